//! Devices, their credentials and their profiles.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::EntityId;

/// The access token with which a link asks to be provisioned; no device has it.
pub const PROVISIONING_TOKEN: &str = "provision";
/// The type of credentials that are an access token.
pub const CREDENTIALS_ACCESS_TOKEN: &str = "ACCESS_TOKEN";

/// A device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its id; none before it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntityId>,
    /// Instant of its creation in milliseconds of the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// Its tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<EntityId>,
    /// Its customer; a null UUID if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<EntityId>,
    /// Its name, unique in the tenant.
    pub name: String,
    /// The name of its profile. A profile that is not there is created with the device.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_profile_id: Option<EntityId>,
    /// Further facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_info: Option<DeviceInfo>,
}

/// Further facts about a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// True if it may connect other devices.
    #[serde(default)]
    pub gateway: bool,
    /// All others.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Query for the access token of a new device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessTokenQuery {
    /// The token; the server makes one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
}

/// Query for the device of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNameQuery {
    /// The name.
    pub device_name: String,
}

/// Credentials of a device.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCredentials {
    /// Their id.
    pub id: Option<CredentialsId>,
    /// Their device.
    pub device_id: EntityId,
    /// Their type, such as [`CREDENTIALS_ACCESS_TOKEN`].
    pub credentials_type: String,
    /// The access token; with other types a hash or a client id.
    pub credentials_id: Option<String>,
    /// The value where the type has one besides its id.
    #[serde(default)]
    pub credentials_value: Option<String>,
}

/// The id of credentials, which has no type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialsId {
    /// A UUID.
    pub id: String,
}

/// Devices as lines of CSV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkImport {
    /// The text of the file.
    pub file: String,
    /// The columns.
    pub mapping: BulkMapping,
}

/// The columns of a file of devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkMapping {
    /// The columns in their order.
    pub columns: Vec<BulkColumn>,
    /// The character between two columns.
    pub delimiter: char,
    /// True to change devices that are there. Those that are there count as updated either way.
    pub update: bool,
    /// True if the first line names the columns.
    pub header: bool,
}

/// A column of a file of devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkColumn {
    /// Its meaning.
    #[serde(rename = "type")]
    pub kind: BulkColumnType,
    /// The key of an attribute or of a time series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Meanings of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BulkColumnType {
    /// The device's name.
    Name,
    /// The name of its profile.
    Type,
    /// Its label.
    Label,
    /// Its access token.
    AccessToken,
    /// `true` if it is a gateway.
    IsGateway,
    /// A text for people, `description` among the further facts.
    Description,
    /// A meaning that no call here uses.
    #[serde(other)]
    Other,
}

/// The account of a bulk import, with status 200 also if all lines failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkImported {
    /// Devices that were created.
    pub created: u64,
    /// Devices that were there.
    pub updated: u64,
    /// Lines that failed.
    pub errors: u64,
    /// The reasons, each once.
    #[serde(default)]
    pub errors_list: Vec<String>,
}

/// A device profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProfile {
    /// Its id; none before it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntityId>,
    /// Its name, unique in the tenant.
    pub name: String,
    /// Always `DEFAULT`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `DEFAULT` for MQTT, HTTP and CoAP with the default topics.
    pub transport_type: String,
    /// `DISABLED`, or the way in which devices provision themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provision_type: Option<String>,
    /// The key that devices of the profile know, if they provision themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provision_device_key: Option<String>,
    /// Its settings, alarm rules among them.
    #[serde(default)]
    pub profile_data: Value,
    /// True for the profile of devices that name none.
    #[serde(default)]
    pub default: bool,
}

impl DeviceProfile {
    /// Returns a profile with the settings of ThingsBoard's default one, before it is created.
    pub fn plain(name: String) -> Self {
        Self {
            id: None,
            name,
            kind: "DEFAULT".to_owned(),
            transport_type: "DEFAULT".to_owned(),
            provision_type: Some("DISABLED".to_owned()),
            provision_device_key: None,
            profile_data: json!({
                "configuration": { "type": "DEFAULT" },
                "transportConfiguration": { "type": "DEFAULT" },
                "provisionConfiguration": { "type": "DISABLED" },
            }),
            default: false,
        }
    }
}
