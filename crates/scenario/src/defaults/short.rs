//! Short forms, which become their long ones before anything is filled in.

use crate::language::Form;
use crate::source::Place;
use crate::tree::{Entry, Node, Value};

/// Short forms of `platform` become their long ones: an address alone is a list of one, and a backend
/// with that `url`.
pub(super) fn lengthen(root: &mut Node) {
    let Some(platform) = root.get_mut("platform") else {
        return;
    };
    if let Some(devices) = platform.get_mut("devices")
        && devices.form() == Form::Single
    {
        devices.value = Value::List(vec![devices.clone()]);
    }
    let Value::Map(entries) = &mut platform.value else {
        return;
    };
    for Entry { key, place, node } in entries {
        match &mut node.value {
            Value::List(items) if key == "backend" => {
                let place = node.place;
                items.iter_mut().for_each(|item| to_backend(item, place));
            }
            Value::Scalar { .. } if key == "backend" => to_backend(node, *place),
            Value::List(_) | Value::Scalar { .. } | Value::Map(_) => {}
        }
    }
}

fn to_backend(node: &mut Node, place: Place) {
    if node.form() == Form::Single {
        let (url, key) = (node.clone(), "url".to_owned());
        let entry = Entry {
            key,
            place,
            node: url,
        };
        *node = Node::new(place, Value::Map(vec![entry]));
    }
}
