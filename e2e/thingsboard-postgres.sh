#!/usr/bin/env bash
# What a ThingsBoard has stored, read back from a real PostgreSQL with the tables of CE 4.3 in two partitions. MUSTER is to
# be built with the feature `postgresql`. The platform is a Mosquitto that acknowledges, and a subscriber that writes what it
# gets as rows. First all is stored, with TLS and without; then rows get lost before they are stored, which are the
# messages that the run names. Then each reason for which a database cannot be read: before a run it keeps it from beginning,
# and at its end nothing counts as lost.
MUSTER=${MUSTER:-target/debug/muster}
source "$(dirname "$0")/lib.sh"
need mosquitto mosquitto_sub jq psql python3 openssl

STORE='.ledger.by_backend.store'
# Debian keeps the server out of PATH.
export PATH="$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)"
need initdb postgres

# The server refuses to run as root.
AS=()
[ "$(id -u)" -ne 0 ] || AS=(setpriv --reuid=postgres --regid=postgres --clear-groups)
DB_PORT=$(free_port)
export PGHOST=127.0.0.1 PGPORT=$DB_PORT PGUSER=postgres PGDATABASE=thingsboard PGPASSWORD=of-the-owner
export DB_PASSWORD=of-the-reader
readonly HERE="127.0.0.1:$DB_PORT"
export DB="postgresql://reader@$HERE/thingsboard"

chmod 711 "$WORK"
authority
certificate server database
mkdir "$WORK/db"
echo "$PGPASSWORD" >"$WORK/password"
chmod 600 "$WORK/server.key"
[ "${#AS[@]}" -eq 0 ] || chown postgres "$WORK/db" "$WORK/server.key" "$WORK/password"
"${AS[@]}" initdb -D "$WORK/db" -U postgres --auth=scram-sha-256 --pwfile="$WORK/password" >"$WORK/initdb.txt"
"${AS[@]}" postgres -D "$WORK/db" -p "$DB_PORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
    -c max_prepared_transactions=1 \
    -c ssl=on -c ssl_cert_file="$WORK/server.pem" -c ssl_key_file="$WORK/server.key" 2>"$WORK/db.log" &
SERVER=$!
STARTED+=("$SERVER")
listens "$DB_PORT"
until psql -d postgres -qc "SELECT 1" >/dev/null 2>&1; do kill -0 "$SERVER"; done
psql -d postgres -qc "CREATE DATABASE thingsboard" -c "CREATE ROLE reader LOGIN PASSWORD 'of-the-reader'" \
    -c "CREATE ROLE stranger LOGIN PASSWORD 'of-the-reader'"

psql -q -f e2e/thingsboard-postgres.sql

# The platform: each process ends with the script.
PORT=$(free_port)
start_mosquitto "$PORT" "log_type subscribe"
mkfifo "$WORK/bodies" "$WORK/rows"
psql -q <"$WORK/rows" 2>"$WORK/rows.err" &
STARTED+=("$!")
python3 e2e/thingsboard_rows.py <"$WORK/bodies" >"$WORK/rows" &
STARTED+=("$!")
mosquitto_sub -p "$PORT" -q 1 -t v1/gateway/telemetry >"$WORK/bodies" &
STARTED+=("$!")
until_lines 1 v1/gateway/telemetry "$WORK/mosquitto-$PORT.log"

# run NAME [ARGUMENT...]: the scenario, into $WORK/NAME.
run() {
    status_of "$MUSTER" run e2e/thingsboard-postgres.yaml --quiet --out "$WORK/$1" \
        --set "platform.devices=[mqtt://127.0.0.1:$PORT]" "${@:2}"
    [ -f "$WORK/$1/result.json" ] || cat "$WORK/out"
}

# stored NAME FILTER: a value of the account of the store, on one line.
stored() {
    value "$WORK/$1" "$STORE | $2 | tojson"
}

# all_stored NAME: of a run that lost nothing.
all_stored() {
    judged "$1" "$WORK/$1" pass
    same "$1: accepted" "$(value "$WORK/$1" .ledger.uplink.accepted)" 1000
    same "$1: stored, absent, outstanding" "$(stored "$1" '[.arrived, .lost, .outstanding, .unstamped, .foreign]')" \
        "[1000,0,0,0,0]"
    same "$1: residue" "$(value "$WORK/$1" .ledger.uplink.residue)" 0
}

run plain
all_stored plain
says "the store has its name" "$(event plain read-back)" "1000 messages of postgresql://$HERE/thingsboard in"
check "no password in the result" bash -c "! grep -rq 'of-the-reader' '$WORK/plain'"
for MONTH in ts_kv_2026_10 ts_kv_2026_11; do
    ROWS=$(psql -Atqc "SELECT count(*) FROM $MONTH JOIN key_dictionary ON key_id = $MONTH.key WHERE key_dictionary.key = 'musterId'")
    check "$MONTH has ids ($ROWS)" test "$ROWS" -gt 100
done

export DB="postgresql://reader@$HERE/thingsboard?sslmode=verify-full"
run secured --set "provision.read-back.tls={ ca: $WORK/ca.pem }"
all_stored secured
export DB="postgresql://reader@$HERE/thingsboard"

# The third and the thirteenth point of each of ten devices get lost as they are stored.
cat >"$WORK/loss.sql" <<'SQL'
CREATE TABLE lost (entity_id uuid, name varchar, seq bigint);
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    earlier bigint;
BEGIN
    earlier := (SELECT count(*) FROM ts_kv WHERE entity_id = NEW.entity_id AND key = NEW.key)
        + (SELECT count(*) FROM lost WHERE entity_id = NEW.entity_id);
    IF earlier IN (2, 12) AND NEW.key = (SELECT key_id FROM key_dictionary AS names WHERE names.key = 'musterId') THEN
        INSERT INTO lost SELECT id, device.name, earlier FROM device
        WHERE id = NEW.entity_id AND device.name < 'DW00000010';
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER lose BEFORE INSERT ON ts_kv FOR EACH ROW EXECUTE FUNCTION lose();
SQL
run lost --set "hooks[0].command=psql -q -v ON_ERROR_STOP=1 -f e2e/thingsboard-postgres.sql -f $WORK/loss.sql"
judged "lost" "$WORK/lost" fail
same "lost: stored, not stored, outstanding" "$(stored lost '[.arrived, .lost, .outstanding]')" "[980,20,0]"
same "lost: residue" "$(value "$WORK/lost" .ledger.uplink.residue)" 0
same "exactly these are not stored" "$(stored lost '.lost_ids | del(.truncated)')" "$(psql -Atqc "
    SELECT json_object_agg(name || '/telemetry', seqs ORDER BY name)
    FROM (SELECT name, json_agg(json_build_array(seq, seq) ORDER BY seq) AS seqs FROM lost GROUP BY name) AS of_device" |
    jq -c .)"

same "each row was written" "$(cat "$WORK/rows.err")" ""

# refused NAME WHY [ARGUMENT...]: a run whose database cannot be read, which is found before its first message.
refused() {
    run "$1" "${@:3}"
    check "$1: it does not begin ($STATUS)" test "$STATUS" -ge 2 -a ! -f "$WORK/$1/result.json"
    check "$1: $2" grep -qF -- "$2" "$WORK/out"
    status_of "$MUSTER" check e2e/thingsboard-postgres.yaml --set "platform.devices=[mqtt://127.0.0.1:$PORT]" "${@:3}"
    check "$1: check sees it ($STATUS)" test "$STATUS" -ne 0
    check "$1: check has its reason" grep -qF -- "$2" "$WORK/out"
}

DB="postgresql://reader@127.0.0.1:$(free_port)/thingsboard" refused closed "Connection refused"
DB_PASSWORD=another refused wrong 'password authentication failed for user "reader"'
DB="postgresql://reader@$HERE/nowhere" refused nowhere 'database "nowhere" does not exist'
DB="postgresql://reader@$HERE/postgres" refused other "this is not a ThingsBoard database: it has no table \`device\`"
DB="postgresql://stranger@$HERE/thingsboard" refused stranger "permission denied for table ts_kv"
DB="postgresql://reader@$HERE/thingsboard?sslmode=require" refused untrusted "signed by no CA that is trusted here"

# unread NAME WHY SQL: a short run whose database can no longer be read after its first look at it: nothing of it counts as
# not stored.
unread() {
    psql -q -f e2e/thingsboard-postgres.sql
    echo "$3" >"$WORK/$1.sql"
    run "$1" --set fleet.count=120 --set phases.measure=1s --set provision.timeout=1s \
        --set "hooks[0].command=psql -q -v ON_ERROR_STOP=1 -f $WORK/$1.sql"
    same "$1: accepted" "$(value "$WORK/$1" .ledger.uplink.accepted)" 200
    same "$1: stored, not stored, outstanding" "$(stored "$1" '[.arrived, .lost, .outstanding]')" "[0,0,200]"
    says "$1" "$(event "$1" read-back-failed)" "$2"
}

unread locked "no answer within 1 s" "BEGIN; LOCK TABLE ts_kv; PREPARE TRANSACTION 'locked'"
psql -qc "ROLLBACK PREPARED 'locked'"
unread revoked "permission denied for table ts_kv" "REVOKE SELECT ON ts_kv FROM reader"
unread dropped "it has no table \`ts_kv\`" "DROP TABLE ts_kv"
unread nobody "it has none of the run's devices" "UPDATE device SET name = 'X' || name"
unread twice "several tenants have devices with the names of the run's" "
    UPDATE device SET tenant_id = '13814000-1dd2-11b2-8080-808080808081' WHERE name < 'DW00000100'"
unread changed "password authentication failed" "ALTER ROLE reader PASSWORD 'another'"
finish
