//! Commands to devices.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A command to a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcRequest {
    /// The method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Milliseconds to wait for the device; at least 5,000, by default 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// True if the server keeps the command for a device that is away; the answer is then its `rpcId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
}
