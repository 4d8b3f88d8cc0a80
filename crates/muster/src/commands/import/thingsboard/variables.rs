//! The environment variables of both generations of the published test.

use super::super::variables::Form::{Any, Plain, Truth, Whole, Word};
use super::super::variables::{Form, Test, Variable};
use crate::args::Generation;

const fn mapped(name: &'static str, of: Option<Generation>, form: Form) -> Variable<Generation> {
    Variable::mapped(name, of, form)
}

const fn idle(name: &'static str, why: &'static str) -> Variable<Generation> {
    Variable::idle(name, LATER, why)
}

const fn refused(
    name: &'static str,
    unless: &'static str,
    why: &'static str,
) -> Variable<Generation> {
    Variable::refused(name, LATER, unless, why)
}

const FIRST: Option<Generation> = Some(Generation::First);
const LATER: Option<Generation> = Some(Generation::Later);

/// Index of a device, gateway or customer at the most; names have eight digits.
const INDEX: Form = Whole(0, 99_999_999);
/// Number of devices or gateways.
const NUMBER: Form = Whole(1, 99_999_999);
/// The longest pause of a device: a day, in milliseconds.
const PAUSE: Form = Whole(1, 86_400_000);
/// The longest load: 11 days, in seconds.
const SECONDS: Form = Whole(1, 950_400);
const PORT: Form = Whole(1, 65_535);

const KEY_STORE: &str = "a Java key store; Muster reads PEM, at `platform.tls.ca`";
const ORDER: &str = "devices always send in the order of their index";
const CHAIN: &str = "the counting chain is a copy of the root chain that is there, not of a file";
const REVERT: &str = "the root chain is put back after every run";
const DASHBOARDS: &str = "dashboards carry no load";
const SERVICE: &str = "the service that runs that test";
const STATS: &str = "a message of each gateway about itself, once in five minutes";
const LWM2M: &str = "a setting of devices over LwM2M, which that test reads with DEVICE_API=LWM2M";
const EPHEMERAL_SETTING: &str = "a setting of EPHEMERAL_ENABLED, which is off";
const GATEWAY_RPC_SETTING: &str = "a setting of GATEWAY_RPC_ENABLED, which is off";

const EPHEMERAL: &str =
    "gateways that connect for one message; remove it, and see `connect: { lifetime: 15m }`";
const GATEWAY_RPC: &str = "that test answers calls to devices of gateways, and issues none; remove it, and see `scenarios/thingsboard-commands.yaml`";
const METHOD: &str = "the method of a call is always setGpio; remove it";
const OTA: &str = "Muster plays no firmware updates; remove it";
const BATCH: &str = "here a message of a gateway has the values of one device; remove it";
const OWN_PROFILE: &str = "the devices' profile is that of gateways, too; remove it";
const ACTIVITY: &str = "Muster does not set it; remove it, and set it in ThingsBoard";
const FILE: &str = "Muster does not read that test's files; remove it";
const NAMES: &str = "devices are named DW and eight digits; remove it, and change `id`";
const INSTANCE: &str = "a scenario is not made by its pod; remove it, and give INSTANCE_IDX";
const NO_LOAD: &str =
    "a scenario has a load; remove it, and use `muster provision SCENARIO create`";

/// The test, with all its variables.
pub(super) static TEST: Test<Generation> = Test {
    name: "ThingsBoard's performance-tests",
    variables: &[
        mapped("REST_URL", None, Plain(".:/-_[]~%")),
        mapped("REST_USERNAME", None, Any),
        mapped("REST_PASSWORD", None, Any),
        mapped("REST_POOL_SIZE", LATER, Whole(1, 64)),
        mapped("REST_CONNECT_SERVER", LATER, Truth),
        mapped("MQTT_HOST", None, Plain(".-_:")),
        mapped("MQTT_PORT", None, PORT),
        mapped("MQTT_SSL_ENABLED", None, Truth),
        Variable::idle("MQTT_SSL_KEY_STORE", None, KEY_STORE),
        Variable::idle("MQTT_SSL_KEY_STORE_PASSWORD", None, KEY_STORE),
        mapped("DEVICE_API", None, Word(&["MQTT", "HTTP"])),
        mapped("DEVICE_START_IDX", None, INDEX),
        mapped("DEVICE_END_IDX", None, INDEX),
        mapped("DEVICE_CREATE_ON_START", None, Truth),
        mapped("DEVICE_DELETE_ON_COMPLETE", None, Truth),
        mapped("PUBLISH_COUNT", FIRST, Whole(1, 100_000_000)),
        mapped("PUBLISH_PAUSE", FIRST, PAUSE),
        mapped("DEVICE_COUNT", LATER, NUMBER),
        mapped("USE_INSTANCE_IDX", LATER, Truth),
        mapped("INSTANCE_IDX", LATER, Whole(0, 99_999)),
        mapped("DEVICE_PROFILE", LATER, Plain(".-_ ")),
        mapped("TEST_API", LATER, Word(&["device", "gateway", "rpc"])),
        mapped("GATEWAY_START_IDX", LATER, INDEX),
        mapped("GATEWAY_END_IDX", LATER, INDEX),
        mapped("GATEWAY_COUNT", LATER, NUMBER),
        mapped("GATEWAY_NAME_PREFIX", LATER, Plain(".-_")),
        mapped("CUSTOMER_START_IDX", LATER, INDEX),
        mapped("CUSTOMER_END_IDX", LATER, INDEX),
        mapped("WARMUP_ENABLED", LATER, Truth),
        mapped("WARMUP_PACK_SIZE", LATER, Whole(1, 1_000_000)),
        mapped("MESSAGES_PER_SECOND", LATER, Whole(1, 10_000_000)),
        mapped("DURATION_IN_SECONDS", LATER, SECONDS),
        mapped("TEST_TELEMETRY", LATER, Truth),
        mapped(
            "TEST_PAYLOAD_TYPE",
            LATER,
            Word(&["SMART_METER", "SMART_TRACKER", "INDUSTRIAL_PLC", "RANDOM"]),
        ),
        mapped("TEST_PAYLOAD_DATAPOINTS", LATER, Whole(1, 999)),
        mapped("ALARMS_PER_SECOND", LATER, Whole(0, 10_000_000)),
        mapped("ALARM_STORM_START_SECOND", LATER, Whole(0, 99_999_999)),
        mapped("ALARM_STORM_END_SECOND", LATER, Whole(0, 99_999_999)),
        mapped("RPC_TWO_WAY", LATER, Truth),
        mapped("UPDATE_ROOT_RULE_CHAIN", LATER, Truth),
        mapped("SEED", LATER, Whole(0, i64::MAX)),
        idle("REVERT_ROOT_RULE_CHAIN", REVERT),
        idle("RULE_CHAIN_NAME", CHAIN),
        idle("TEST_SEQUENTIAL", ORDER),
        idle(
            "GATEWAY_CREATE_ON_START",
            "gateways are created with their devices",
        ),
        idle(
            "GATEWAY_DELETE_ON_COMPLETE",
            "gateways are removed with their devices",
        ),
        idle("GATEWAY_STATS_REPORT", STATS),
        idle("GATEWAY_STATS_REPORT_INTERVAL_SEC", STATS),
        idle(
            "CUSTOMER_CREATE_ON_START",
            "customers are created with their devices",
        ),
        idle(
            "CUSTOMER_DELETE_ON_COMPLETE",
            "customers are removed with their devices",
        ),
        idle("DASHBOARD_CREATE_ON_START", DASHBOARDS),
        idle("DASHBOARD_DELETE_ON_COMPLETE", DASHBOARDS),
        idle("DASHBOARD_DELETE_IF_EXISTS", DASHBOARDS),
        idle("EXIT_AFTER_COMPLETE", SERVICE),
        idle("SERVER_PORT", SERVICE),
        idle("ENDPOINTS_WEB_EXPOSURE_INCLUDE", SERVICE),
        idle("ENDPOINT_SHUTDOWN_ENABLED", SERVICE),
        idle("ENDPOINTS_SHUTDOWN_ENABLED", SERVICE),
        refused("TEST_ENABLED", "true", NO_LOAD),
        refused("DEVICE_NAME_FORMAT", "DEFAULT", NAMES),
        refused("DEVICE_PROFILE_PATH", "", FILE),
        refused("TEST_PAYLOAD_TEMPLATE", "", FILE),
        refused("USE_INSTANCE_IDX_REGEX", "false", INSTANCE),
        refused("INSTANCE_IDX_REGEX_SOURCE", "", INSTANCE),
        idle(
            "INSTANCE_IDX_REGEX",
            "a setting of USE_INSTANCE_IDX_REGEX, which is off",
        ),
        refused("GATEWAY_PROFILE", "", OWN_PROFILE),
        refused("GATEWAY_OVERWRITE_ACTIVITY_TIME", "false", ACTIVITY),
        refused("GATEWAY_BATCH", "false", BATCH),
        refused("GATEWAY_RPC_ENABLED", "false", GATEWAY_RPC),
        idle("GATEWAY_RPC_TOPIC", GATEWAY_RPC_SETTING),
        idle("GATEWAY_RPC_RESPOND", GATEWAY_RPC_SETTING),
        idle("GATEWAY_RPC_RESPONSE_TEMPLATE", GATEWAY_RPC_SETTING),
        idle("GATEWAY_RPC_SEND_TS_PATH", GATEWAY_RPC_SETTING),
        refused("RPC_METHOD", "setGpio", METHOD),
        refused("OTA_FIRMWARE_TITLE", "", OTA),
        refused("OTA_FIRMWARE_VERSION", "", OTA),
        refused("OTA_FIRMWARE_SIZE", "", OTA),
        refused("OTA_CHUNK_SIZE", "", OTA),
        refused("EPHEMERAL_ENABLED", "false", EPHEMERAL),
        idle("EPHEMERAL_CYCLE_SEC", EPHEMERAL_SETTING),
        idle("EPHEMERAL_JITTER_SEC", EPHEMERAL_SETTING),
        idle("EPHEMERAL_FIRST_CONNECT_JITTER_SEC", EPHEMERAL_SETTING),
        idle("EPHEMERAL_MAX_CONCURRENT_CONNECTS", EPHEMERAL_SETTING),
        idle("EPHEMERAL_GATEWAY_CONNECT", EPHEMERAL_SETTING),
        idle("EPHEMERAL_SCHEDULER_THREADS", EPHEMERAL_SETTING),
        idle("LWM2M_HOST", LWM2M),
        idle("LWM2M_PORT", LWM2M),
        idle("LWM2M_RECOMMENDED_CIPHERS", LWM2M),
        idle("LWM2M_RECOMMENDED_SUPPORTED_GROUPS", LWM2M),
        idle("NO_SEC_ENABLED", LWM2M),
        idle("NO_SEC_HOST", LWM2M),
        idle("NO_SEC_PORT", LWM2M),
        idle("NO_SEC_BS_ENABLED", LWM2M),
        idle("NO_SEC_BS_HOST", LWM2M),
        idle("NO_SEC_BS_PORT", LWM2M),
        idle("PSK_ENABLED", LWM2M),
        idle("PSK_HOST", LWM2M),
        idle("PSK_PORT", LWM2M),
        idle("RPK_ENABLED", LWM2M),
        idle("RPK_HOST", LWM2M),
        idle("RPK_PORT", LWM2M),
        idle("X509_ENABLED", LWM2M),
        idle("X509_HOST", LWM2M),
        idle("X509_PORT", LWM2M),
    ],
    prefixes: &[
        "REST_",
        "MQTT_",
        "DEVICE_",
        "GATEWAY_",
        "CUSTOMER_",
        "DASHBOARD_",
        "WARMUP_",
        "TEST_",
        "PUBLISH_",
        "ALARM",
        "EPHEMERAL_",
        "LWM2M_",
        "OTA_",
        "RPC_",
    ],
};
