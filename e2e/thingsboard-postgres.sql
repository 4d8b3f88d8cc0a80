-- The tables of ThingsBoard CE 4.3 that a read-back reads (columns, keys and partitions by month as in its
-- schema-entities.sql and schema-ts-psql.sql), with devices for e2e/thingsboard-postgres.sh. The bounds between
-- both months lie three seconds ahead.
SET client_min_messages = warning;
DROP TABLE IF EXISTS ts_kv, key_dictionary, device;
CREATE TABLE device (
    id uuid NOT NULL CONSTRAINT device_pkey PRIMARY KEY,
    created_time bigint NOT NULL,
    additional_info varchar,
    customer_id uuid,
    device_profile_id uuid NOT NULL,
    device_data jsonb,
    type varchar(255),
    name varchar(255),
    label varchar(255),
    tenant_id uuid,
    firmware_id uuid,
    software_id uuid,
    external_id uuid,
    version bigint DEFAULT 1,
    CONSTRAINT device_name_unq_key UNIQUE (tenant_id, name),
    CONSTRAINT device_external_id_unq_key UNIQUE (tenant_id, external_id)
);
CREATE TABLE key_dictionary (
    key varchar(255) NOT NULL,
    key_id serial UNIQUE,
    CONSTRAINT key_dictionary_id_pkey PRIMARY KEY (key)
);
CREATE TABLE ts_kv (
    entity_id uuid NOT NULL,
    key int NOT NULL,
    ts bigint NOT NULL,
    bool_v boolean,
    str_v varchar(10000000),
    long_v bigint,
    dbl_v double precision,
    json_v json,
    CONSTRAINT ts_kv_pkey PRIMARY KEY (entity_id, key, ts)
) PARTITION BY RANGE (ts);
SELECT (extract(epoch FROM now()) * 1000)::bigint + 3000 AS month_end \gset
CREATE TABLE ts_kv_2026_10 PARTITION OF ts_kv FOR VALUES FROM (1759276800000) TO (:month_end);
CREATE TABLE ts_kv_2026_11 PARTITION OF ts_kv FOR VALUES FROM (:month_end) TO (9223372036854775807);
INSERT INTO device (id, created_time, device_profile_id, type, name, tenant_id)
SELECT gen_random_uuid(), 0, gen_random_uuid(), 'default', 'DW' || lpad(place::text, 8, '0'),
    '13814000-1dd2-11b2-8080-808080808080'
FROM generate_series(0, 119) AS place;
GRANT SELECT ON device, key_dictionary, ts_kv TO reader;
GRANT SELECT ON device, key_dictionary TO stranger;
