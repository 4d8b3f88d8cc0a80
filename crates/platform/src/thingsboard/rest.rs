//! ThingsBoard's REST calls, each once: method, path, query, body and answer.
//!
//! Noted on ThingsBoard CE 4.3.1.3. Both ends use this table: whoever provisions and reads, and the reference
//! gateway. Types hold the members that either of them uses; others are ignored when they are read. Nothing
//! here knows a socket.

mod customers;
mod devices;
mod failure;
mod rpc;
mod rule_chains;
mod series;
mod session;

use std::marker::PhantomData;

use muster_model::percent::Part;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use customers::{Customer, TitleQuery};
pub use devices::{
    AccessTokenQuery, BulkColumn, BulkColumnType, BulkImport, BulkImported, BulkMapping,
    CREDENTIALS_ACCESS_TOKEN, CredentialsId, Device, DeviceCredentials, DeviceInfo,
    DeviceNameQuery, DeviceProfile, PROVISIONING_TOKEN,
};
pub use failure::{ErrorCode, Failure};
pub use rpc::RpcRequest;
pub use rule_chains::{
    COUNT_NODE, CountConfiguration, LimitQuery, NodeConnection, OverwriteQuery, RuleChain,
    RuleChainData, RuleChainImported, RuleChainMetadata, RuleNode,
};
pub use series::{Aggregation, Point, Series, SeriesQuery, SortOrder};
pub use session::{AUTHORIZATION, Authority, Login, Refresh, Session, Tokens, User};

/// Logs in by name and password.
pub const LOGIN: Call<0, NoQuery, Login, Tokens> = Call::post("/api/auth/login");
/// Exchanges a refresh token for new tokens.
pub const REFRESH: Call<0, NoQuery, Refresh, Tokens> = Call::post("/api/auth/token");
/// Ends the session.
pub const LOGOUT: Call<0, NoQuery, (), ()> = Call::post("/api/auth/logout");
/// Reads who is logged in.
pub const USER: Call<0, NoQuery, (), User> = Call::get("/api/auth/user");

/// Creates a device with this access token.
pub const CREATE_DEVICE: Call<0, AccessTokenQuery, Device, Device> = Call::post("/api/device");
/// Creates devices from lines of CSV.
pub const IMPORT_DEVICES: Call<0, NoQuery, BulkImport, BulkImported> =
    Call::post("/api/device/bulk_import");
/// Finds the device of a name. It shares the route of [`LIST_DEVICES`], and has another query.
pub const FIND_DEVICE: Call<0, DeviceNameQuery, (), Device> = Call::get("/api/tenant/devices");
/// Lists the devices of the tenant.
pub const LIST_DEVICES: Call<0, PageQuery, (), Page<Device>> = Call::get("/api/tenant/devices");
/// Reads a device.
pub const READ_DEVICE: Call<1, NoQuery, (), Device> = Call::get("/api/device/{device}");
/// Deletes a device.
pub const DELETE_DEVICE: Call<1, NoQuery, (), ()> = Call::delete("/api/device/{device}");
/// Reads the credentials of a device.
pub const READ_CREDENTIALS: Call<1, NoQuery, (), DeviceCredentials> =
    Call::get("/api/device/{device}/credentials");
/// Replaces the credentials of a device.
pub const WRITE_CREDENTIALS: Call<0, NoQuery, DeviceCredentials, DeviceCredentials> =
    Call::post("/api/device/credentials");

/// Creates a device profile.
pub const CREATE_PROFILE: Call<0, NoQuery, DeviceProfile, DeviceProfile> =
    Call::post("/api/deviceProfile");
/// Lists the device profiles.
pub const LIST_PROFILES: Call<0, PageQuery, (), Page<DeviceProfile>> =
    Call::get("/api/deviceProfiles");
/// Reads a device profile.
pub const READ_PROFILE: Call<1, NoQuery, (), DeviceProfile> =
    Call::get("/api/deviceProfile/{profile}");
/// Deletes a device profile that no device has.
pub const DELETE_PROFILE: Call<1, NoQuery, (), ()> = Call::delete("/api/deviceProfile/{profile}");

/// Creates a customer.
pub const CREATE_CUSTOMER: Call<0, NoQuery, Customer, Customer> = Call::post("/api/customer");
/// Finds the customer of a title.
pub const FIND_CUSTOMER: Call<0, TitleQuery, (), Customer> = Call::get("/api/tenant/customers");
/// Deletes a customer.
pub const DELETE_CUSTOMER: Call<1, NoQuery, (), ()> = Call::delete("/api/customer/{customer}");
/// Assigns a device to a customer.
pub const ASSIGN_DEVICE: Call<2, NoQuery, (), Device> =
    Call::post("/api/customer/{customer}/device/{device}");

/// Lists the rule chains.
pub const LIST_RULE_CHAINS: Call<0, PageQuery, (), Page<RuleChain>> = Call::get("/api/ruleChains");
/// Creates a rule chain without nodes.
pub const CREATE_RULE_CHAIN: Call<0, NoQuery, RuleChain, RuleChain> = Call::post("/api/ruleChain");
/// Reads a rule chain.
pub const READ_RULE_CHAIN: Call<1, NoQuery, (), RuleChain> = Call::get("/api/ruleChain/{chain}");
/// Deletes a rule chain; the root is refused.
pub const DELETE_RULE_CHAIN: Call<1, NoQuery, (), ()> = Call::delete("/api/ruleChain/{chain}");
/// Reads the nodes of a rule chain.
pub const READ_NODES: Call<1, NoQuery, (), RuleChainMetadata> =
    Call::get("/api/ruleChain/{chain}/metadata");
/// Replaces the nodes of a rule chain.
pub const WRITE_NODES: Call<0, NoQuery, RuleChainMetadata, RuleChainMetadata> =
    Call::post("/api/ruleChain/metadata");
/// Makes a rule chain the root.
pub const MAKE_ROOT: Call<1, NoQuery, (), RuleChain> = Call::post("/api/ruleChain/{chain}/root");

/// Reads rule chains with their nodes.
pub const EXPORT_RULE_CHAINS: Call<0, LimitQuery, (), RuleChainData> =
    Call::get("/api/ruleChains/export");
/// Creates rule chains with their nodes. What has a version is taken for a chain that is there, and refused.
pub const IMPORT_RULE_CHAINS: Call<0, OverwriteQuery, RuleChainData, Vec<RuleChainImported>> =
    Call::post("/api/ruleChains/import");

/// Lists the keys of the time series of an entity; the first parameter is its [`EntityType`].
pub const SERIES_KEYS: Call<2, NoQuery, (), Vec<String>> =
    Call::get("/api/plugins/telemetry/{type}/{entity}/keys/timeseries");
/// Reads time series of an entity; the first parameter is its [`EntityType`].
pub const SERIES: Call<2, SeriesQuery, (), Series> =
    Call::get("/api/plugins/telemetry/{type}/{entity}/values/timeseries");

/// Sends a command to a device that wants no reply.
pub const RPC_ONE_WAY: Call<1, NoQuery, RpcRequest, Value> = Call::post("/api/rpc/oneway/{device}");
/// Sends a command to a device and waits for its reply.
pub const RPC_TWO_WAY: Call<1, NoQuery, RpcRequest, Value> = Call::post("/api/rpc/twoway/{device}");
/// [`RPC_ONE_WAY`] of older versions: a device that is away is 409.
pub const OLD_RPC_ONE_WAY: Call<1, NoQuery, RpcRequest, Value> =
    Call::post("/api/plugins/rpc/oneway/{device}");
/// [`RPC_TWO_WAY`] of older versions: a device that is away is 409, and one that is silent 408.
pub const OLD_RPC_TWO_WAY: Call<1, NoQuery, RpcRequest, Value> =
    Call::post("/api/plugins/rpc/twoway/{device}");

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET.
    Get,
    /// POST.
    Post,
    /// DELETE.
    Delete,
}

/// A call with `N` parameters in its path, a query `Q`, a body `B` and an answer `A`. The unit type is an empty
/// body.
#[derive(Debug)]
pub struct Call<const N: usize, Q, B, A> {
    verb: Verb,
    route: &'static str,
    types: PhantomData<fn(Q, B) -> A>,
}

/// Query without a parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoQuery {}

/// Query for a page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageQuery {
    /// Things on a page at the most, above zero.
    pub page_size: u32,
    /// Number of the page, from zero.
    pub page: u32,
    /// Beginning of the names that are wanted, without case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_search: Option<String>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The things of this page.
    pub data: Vec<T>,
    /// Number of pages.
    pub total_pages: u64,
    /// Things on all pages.
    pub total_elements: u64,
    /// True if another page follows.
    pub has_next: bool,
}

/// The id of an entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityId {
    /// Its kind.
    pub entity_type: EntityType,
    /// Its UUID.
    pub id: String,
}

/// Kinds of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EntityType {
    /// A tenant.
    Tenant,
    /// A customer of a tenant.
    Customer,
    /// A user.
    User,
    /// A device.
    Device,
    /// A device profile.
    DeviceProfile,
    /// A rule chain.
    RuleChain,
    /// A node of a rule chain.
    RuleNode,
    /// A kind that no call here uses.
    #[serde(other)]
    Other,
}

impl<const N: usize, Q, B, A> Call<N, Q, B, A> {
    const fn get(route: &'static str) -> Self {
        Self::new(Verb::Get, route)
    }

    const fn post(route: &'static str) -> Self {
        Self::new(Verb::Post, route)
    }

    const fn delete(route: &'static str) -> Self {
        Self::new(Verb::Delete, route)
    }

    const fn new(verb: Verb, route: &'static str) -> Self {
        assert!(parameters(route) == N, "the route has other parameters");
        Self {
            verb,
            route,
            types: PhantomData,
        }
    }

    /// Returns its method.
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns its path as a router takes it, with a name in braces for each parameter.
    pub const fn route(&self) -> &'static str {
        self.route
    }

    /// Renders its path; the parameters are encoded.
    pub fn path(&self, parameters: [&str; N]) -> String {
        let mut path = String::new();
        let mut rest = self.route;
        for parameter in parameters {
            let (before, behind) = rest.split_once('{').unwrap_or((rest, ""));
            path.push_str(before);
            Part::Value.encode(parameter, &mut path);
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        path + rest
    }
}

impl EntityId {
    /// Returns the id of an entity of this kind.
    pub fn new(entity_type: EntityType, id: &str) -> Self {
        Self {
            entity_type,
            id: id.to_owned(),
        }
    }
}

impl EntityType {
    /// Returns its name in a path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenant => "TENANT",
            Self::Customer => "CUSTOMER",
            Self::User => "USER",
            Self::Device => "DEVICE",
            Self::DeviceProfile => "DEVICE_PROFILE",
            Self::RuleChain => "RULE_CHAIN",
            Self::RuleNode => "RULE_NODE",
            Self::Other => "OTHER",
        }
    }

    /// Returns the kind of a name in a path.
    pub fn of(name: &str) -> Option<Self> {
        let all = [
            Self::Tenant,
            Self::Customer,
            Self::User,
            Self::Device,
            Self::DeviceProfile,
            Self::RuleChain,
            Self::RuleNode,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// Reads a parameter that is true or false, in the words that Spring takes and in any case.
fn flag<'de, D: Deserializer<'de>>(parameter: D) -> Result<Option<bool>, D::Error> {
    let text = String::deserialize(parameter)?;
    match text.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "true" | "on" | "yes" | "1" => Ok(Some(true)),
        "false" | "off" | "no" | "0" => Ok(Some(false)),
        _ => Err(D::Error::custom(format!("`{text}` is not true or false"))),
    }
}

/// Counts the parameters of a route.
const fn parameters(route: &str) -> usize {
    let (bytes, mut at, mut count) = (route.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            count += 1;
        }
        at += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_holds_its_parameters_encoded() {
        let path = SERIES.path(["DEVICE", "a/b"]);
        let wanted = "/api/plugins/telemetry/DEVICE/a%2Fb/values/timeseries";
        assert_eq!(path, wanted);
        assert_eq!(LOGIN.path([]), "/api/auth/login");
        assert_eq!(MAKE_ROOT.path(["7"]), "/api/ruleChain/7/root");
        assert_eq!(
            (LOGIN.verb(), DELETE_DEVICE.verb()),
            (Verb::Post, Verb::Delete)
        );
    }

    /// Checks that what a ThingsBoard answers is read, and written as it was.
    fn check<T: Serialize + DeserializeOwned>(answer: &Value) {
        let read: T = serde_json::from_value(answer.clone()).expect("it is read");
        assert_eq!(&serde_json::to_value(read).expect("it is written"), answer);
    }

    #[test]
    fn answers_of_a_real_server_are_read() {
        check::<Tokens>(&json!({ "token": "t", "refreshToken": "r" }));
        check::<Failure>(&json!({
            "status": 403, "message": "Devices limit reached", "errorCode": 41,
            "entityType": "DEVICE", "limit": 3,
        }));
        check::<Page<RuleChain>>(&json!({
            "data": [{
                "id": { "entityType": "RULE_CHAIN", "id": "7" },
                "name": "Root Rule Chain", "type": "CORE", "root": true, "debugMode": false,
                "version": 1,
            }],
            "totalPages": 1, "totalElements": 1, "hasNext": false,
        }));
        check::<Series>(&json!({ "t": [{ "ts": 1, "value": "5" }, { "ts": 2, "value": 5 }] }));
        check::<BulkImported>(&json!({
            "created": 1, "updated": 0, "errors": 1, "errorsList": ["Devices limit reached"],
        }));
        check::<DeviceCredentials>(&json!({
            "id": { "id": "9" }, "deviceId": { "entityType": "DEVICE", "id": "7" },
            "credentialsType": "ACCESS_TOKEN", "credentialsId": "token", "credentialsValue": null,
        }));
    }

    #[test]
    fn a_query_is_written_in_the_words_of_the_api() {
        let query = SeriesQuery {
            keys: "a,b".to_owned(),
            start_ts: Some(1),
            end_ts: Some(9),
            limit: Some(1_000),
            agg: Some(Aggregation::None),
            order_by: Some(SortOrder::Ascending),
            ..SeriesQuery::default()
        };
        let wanted = json!({
            "keys": "a,b", "startTs": 1, "endTs": 9, "limit": 1_000, "agg": "NONE", "orderBy": "ASC",
        });
        assert_eq!(serde_json::to_value(query).expect("it is written"), wanted);
    }

    #[test]
    fn a_parameter_is_true_or_false_in_any_case_or_an_error() {
        let read = |text: &str| {
            let query = serde_json::from_value::<OverwriteQuery>(json!({ "overwrite": text }));
            query.map(|query| query.overwrite).ok()
        };
        assert_eq!(["True", "on", "1"].map(read), [Some(Some(true)); 3]);
        assert_eq!(["false", "No", "0"].map(read), [Some(Some(false)); 3]);
        assert_eq!((read(""), read("maybe")), (Some(None), None));
    }

    #[test]
    fn a_kind_of_entity_has_one_name() {
        let names = [
            "TENANT",
            "CUSTOMER",
            "USER",
            "DEVICE",
            "DEVICE_PROFILE",
            "RULE_CHAIN",
        ];
        for name in names {
            let kind = EntityType::of(name).expect("it is known");
            assert_eq!(serde_json::to_value(kind).expect("it is written"), name);
        }
        let asset: EntityType = serde_json::from_value(json!("ASSET")).expect("it is read");
        assert_eq!((asset, EntityType::of("ASSET")), (EntityType::Other, None));
    }
}
