//! Random calls against a plain model, and what is left of them when the process is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use muster_net::Clock;
use muster_platform::board_rest::{
    Customer, Device, Page, PageQuery, RuleChain, SeriesQuery, SortOrder,
};
use muster_platform::{Dialect, Question};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::attributes::Scope;
use super::devices::Admission;
use super::queue::{Content, Subject};
use super::refusal::Answer;
use super::store::Change;
use super::*;
use crate::config::GatewayConfig;

/// Devices that the tenant of a test may have.
const LIMIT: usize = 4;

/// One call, by names of a small alphabet, so that calls meet the same things.
#[derive(Debug, Clone)]
enum Step {
    Create {
        name: String,
        token: String,
    },
    /// A device provisions itself.
    Provision {
        name: String,
        token: String,
    },
    SetShared {
        name: String,
        key: String,
        value: i64,
    },
    Rename {
        from: String,
        to: String,
    },
    Delete {
        name: String,
    },
    SetToken {
        name: String,
        token: String,
    },
    Store {
        name: String,
        key: String,
        ts: i64,
        value: i64,
    },
    CreateCustomer {
        title: String,
    },
    Assign {
        name: String,
        title: String,
    },
    DeleteCustomer {
        title: String,
    },
    CreateChain,
    /// The oldest chain is exported, and imported as a new one.
    CopyChain,
    MakeRoot {
        place: usize,
    },
    DeleteChain {
        place: usize,
    },
    /// The process is killed, and started again.
    Kill,
}

/// Content that the store has to have.
#[derive(Debug, Default)]
struct Model {
    devices: BTreeMap<String, ModelDevice>,
    customers: BTreeSet<String>,
    /// Ids, and the root at its place.
    chains: Vec<String>,
    root: String,
}

#[derive(Debug, Default)]
struct ModelDevice {
    token: String,
    customer: Option<String>,
    points: BTreeMap<(String, i64), i64>,
    shared: BTreeMap<String, i64>,
}

fn steps() -> impl Strategy<Value = Step> {
    let name = || "[a-f]";
    prop_oneof![
        4 => (name(), name()).prop_map(|(name, token)| Step::Create { name, token }),
        2 => (name(), name()).prop_map(|(name, token)| Step::Provision { name, token }),
        2 => (name(), "[xy]", any::<i64>())
            .prop_map(|(name, key, value)| Step::SetShared { name, key, value }),
        1 => (name(), name()).prop_map(|(from, to)| Step::Rename { from, to }),
        2 => name().prop_map(|name| Step::Delete { name }),
        2 => (name(), name()).prop_map(|(name, token)| Step::SetToken { name, token }),
        6 => (name(), "[xy]", 0i64..4, any::<i64>())
            .prop_map(|(name, key, ts, value)| Step::Store { name, key, ts, value }),
        1 => name().prop_map(|title| Step::CreateCustomer { title }),
        1 => (name(), name()).prop_map(|(name, title)| Step::Assign { name, title }),
        1 => name().prop_map(|title| Step::DeleteCustomer { title }),
        1 => Just(Step::CreateChain),
        1 => Just(Step::CopyChain),
        1 => (0usize..4).prop_map(|place| Step::MakeRoot { place }),
        1 => (0usize..4).prop_map(|place| Step::DeleteChain { place }),
        1 => Just(Step::Kill),
    ]
}

fn open(file: &Path) -> Board {
    let config = GatewayConfig {
        dialect: Dialect::Thingsboard,
        ..GatewayConfig::default()
    };
    let management = ManagementConfig {
        store: Some(file.to_owned()),
        ..ManagementConfig::default()
    };
    Board::open(&config, &management, Clock::start()).expect("a store")
}

fn status<T>(answer: Answer<T>) -> u16 {
    answer.map_or_else(|refusal| refusal.0.status, |_| 200)
}

fn yes_or(no: u16, is_yes: bool) -> u16 {
    if is_yes { 200 } else { no }
}

fn device_id(board: &Board, name: &str) -> Option<String> {
    let tables = board.store.read().expect("it is read");
    devices::named(&tables, name).ok()?.id.map(|id| id.id)
}

fn customer_id(board: &Board, title: &str) -> Option<String> {
    let tables = board.store.read().expect("it is read");
    customers::titled(&tables, title).ok()?.id.map(|id| id.id)
}

fn chain_ids(board: &Board) -> Vec<String> {
    let tables = board.store.read().expect("it is read");
    let query = PageQuery {
        page_size: 1_000,
        ..PageQuery::default()
    };
    let page: Page<RuleChain> = records::page(&tables, &query).expect("a page");
    page.data
        .into_iter()
        .filter_map(|chain| Some(chain.id?.id))
        .collect()
}

/// No entity has it.
const NOBODYS: &str = serial::NOBODY;

fn write(board: &Board, change: impl FnOnce(&Change) -> Answer<()>) -> u16 {
    status(board.store.write(change))
}

/// The answer to a question of a device.
fn answer(board: &Board, device: &str, question: &Question<'_>) -> Value {
    let answer = board.answer(device, question).expect("it is answered");
    serde_json::from_slice(&answer).expect("it is JSON")
}

/// The status that a step gets, and that the model gives it.
fn take(board: &Board, model: &mut Model, step: &Step) -> (u16, u16) {
    match step {
        Step::Create { name, token } => model.create(board, name, token),
        Step::Provision { name, token } => model.provision(board, name, token),
        Step::SetShared { name, key, value } => model.set_shared(board, name, (key, *value)),
        Step::Rename { from, to } => model.rename(board, from, to),
        Step::Delete { name } => model.delete(board, name),
        Step::SetToken { name, token } => model.set_token(board, name, token),
        Step::Store {
            name,
            key,
            ts,
            value,
        } => model.store(board, name, (key, *ts, *value)),
        Step::CreateCustomer { title } => model.create_customer(board, title),
        Step::Assign { name, title } => model.assign(board, name, title),
        Step::DeleteCustomer { title } => model.delete_customer(board, title),
        Step::CreateChain => model.create_chain(board),
        Step::CopyChain => model.copy_chain(board),
        Step::MakeRoot { place } => model.make_root(board, *place),
        Step::DeleteChain { place } => model.delete_chain(board, *place),
        Step::Kill => (200, 200),
    }
}

impl Model {
    fn create(&mut self, board: &Board, name: &str, token: &str) -> (u16, u16) {
        let is_new = !self.devices.contains_key(name);
        let is_full = self.devices.len() >= LIMIT && is_new;
        let mut tokens = self.devices.values().map(|device| &device.token);
        let is_free = !is_full && is_new && !tokens.any(|other| other == token);
        if is_free {
            let device = ModelDevice {
                token: token.to_owned(),
                ..ModelDevice::default()
            };
            self.devices.insert(name.to_owned(), device);
        }
        let device = Device {
            name: name.to_owned(),
            ..Device::default()
        };
        let admission = Admission {
            token: Some(token),
            limit: Some(LIMIT as u32),
            now_ms: 0,
        };
        let got = write(board, |tables| {
            devices::save(tables, device, &admission).map(drop)
        });
        (got, yes_or(if is_full { 403 } else { 400 }, is_free))
    }

    fn provision(&mut self, board: &Board, name: &str, token: &str) -> (u16, u16) {
        let mut tokens = self.devices.values().map(|device| &device.token);
        let is_free = !tokens.any(|other| other == token) && !self.devices.contains_key(name);
        if is_free {
            let device = ModelDevice {
                token: token.to_owned(),
                ..ModelDevice::default()
            };
            self.devices.insert(name.to_owned(), device);
        }
        let request = format!(
            r#"{{"deviceName":"{name}","provisionDeviceKey":"k","provisionDeviceSecret":"s","token":"{token}"}}"#
        );
        let answer = answer(board, "provision", &Question::Device(request.as_bytes()));
        let got = yes_or(400, answer["status"] == "SUCCESS");
        (got, yes_or(400, is_free))
    }

    fn set_shared(&mut self, board: &Board, name: &str, set: (&str, i64)) -> (u16, u16) {
        let (key, value) = set;
        let device = self.devices.get_mut(name);
        let is_known = device
            .map(|device| device.shared.insert(key.to_owned(), value))
            .is_some();
        let values = Map::from_iter([(key.to_owned(), value.into())]);
        let got = write(board, |tables| {
            let id = records::named::<Device>(tables, name)?;
            let id = id.ok_or_else(refusal::Refusal::not_found)?;
            attributes::set(tables, (id, Scope::Shared), &values, 0)
        });
        (got, yes_or(404, is_known))
    }

    fn rename(&mut self, board: &Board, from: &str, to: &str) -> (u16, u16) {
        let is_known = self.devices.contains_key(from);
        let is_free = is_known && (from == to || !self.devices.contains_key(to));
        if let Some(device) = self.devices.remove(from) {
            let name = if is_free { to } else { from };
            self.devices.insert(name.to_owned(), device);
        }
        let Some(id) = device_id(board, from) else {
            return (404, yes_or(404, is_known));
        };
        let admission = Admission {
            token: None,
            limit: None,
            now_ms: 0,
        };
        let got = write(board, |tables| {
            let renamed = Device {
                name: to.to_owned(),
                ..devices::read(tables, &id)?
            };
            devices::save(tables, renamed, &admission).map(drop)
        });
        (got, yes_or(400, is_free))
    }

    fn delete(&mut self, board: &Board, name: &str) -> (u16, u16) {
        let id = device_id(board, name).unwrap_or_else(|| NOBODYS.to_owned());
        let got = write(board, |tables| devices::delete(tables, &id));
        (got, yes_or(404, self.devices.remove(name).is_some()))
    }

    fn set_token(&mut self, board: &Board, name: &str, token: &str) -> (u16, u16) {
        let mut others = self.devices.iter().filter(|(other, _)| *other != name);
        let is_free = !others.any(|(_, device)| device.token == token);
        let Some(device) = self.devices.get_mut(name) else {
            return (yes_or(404, device_id(board, name).is_some()), 404);
        };
        if is_free {
            token.clone_into(&mut device.token);
        }
        let id = device_id(board, name).unwrap_or_else(|| NOBODYS.to_owned());
        let got = write(board, |tables| {
            let mut credentials = devices::credentials(tables, &id)?;
            credentials.credentials_id = Some(token.to_owned());
            devices::set_credentials(tables, credentials).map(drop)
        });
        (got, yes_or(400, is_free))
    }

    fn store(&mut self, board: &Board, name: &str, point: (&str, i64, i64)) -> (u16, u16) {
        let (key, ts, value) = point;
        let Some(device) = self.devices.get_mut(name) else {
            return (yes_or(404, device_id(board, name).is_some()), 404);
        };
        device.points.insert((key.to_owned(), ts), value);
        let payload = format!(r#"{{"ts":{ts},"values":{{"{key}":{value}}}}}"#);
        let content = Content::Telemetry;
        let subject = Subject {
            device: name,
            content,
        };
        let data = points::read(subject, payload.as_bytes()).expect("it is readable");
        let got = write(board, |tables| {
            let id = records::named::<Device>(tables, name)?;
            let id = id.ok_or_else(refusal::Refusal::not_found)?;
            writer::keep(tables, (id, content), &data, 0)
        });
        (got, 200)
    }

    fn create_customer(&mut self, board: &Board, title: &str) -> (u16, u16) {
        let customer = Customer {
            id: None,
            title: title.to_owned(),
        };
        let got = write(board, |tables| customers::save(tables, customer).map(drop));
        (got, yes_or(400, self.customers.insert(title.to_owned())))
    }

    fn assign(&mut self, board: &Board, name: &str, title: &str) -> (u16, u16) {
        let is_known = self.customers.contains(title);
        let device = self.devices.get_mut(name).filter(|_| is_known);
        let is_assigned = device
            .map(|device| device.customer = Some(title.to_owned()))
            .is_some();
        let ids = [customer_id(board, title), device_id(board, name)];
        let [customer, device] = ids.map(|id| id.unwrap_or_else(|| NOBODYS.to_owned()));
        let got = write(board, |tables| {
            let customer = customers::known(tables, &customer)?;
            devices::assign(tables, &device, customer).map(drop)
        });
        (got, yes_or(404, is_assigned))
    }

    fn delete_customer(&mut self, board: &Board, title: &str) -> (u16, u16) {
        let was_there = self.customers.remove(title);
        let devices = self.devices.values_mut();
        let theirs = devices.filter(|device| device.customer.as_deref() == Some(title));
        theirs.for_each(|device| device.customer = None);
        let id = customer_id(board, title).unwrap_or_else(|| NOBODYS.to_owned());
        let got = write(board, |tables| customers::delete(tables, &id));
        (got, yes_or(404, was_there))
    }

    fn create_chain(&mut self, board: &Board) -> (u16, u16) {
        let chain = RuleChain {
            name: "c".to_owned(),
            ..RuleChain::default()
        };
        let made = board.store.write(|tables| chains::save(tables, chain, 0));
        let id = made.map(|chain| chain.id.map(|id| id.id));
        self.chains.extend(id.as_ref().ok().cloned().flatten());
        (status(id), 200)
    }

    fn copy_chain(&mut self, board: &Board) -> (u16, u16) {
        let copied = board.store.write(|tables| {
            let mut data = chains::export(tables, 1)?;
            data.rule_chains[0].version = None;
            chains::import(tables, data, false, 0)
        });
        let ids = copied.iter().flatten();
        let ids = ids.filter_map(|chain| Some(chain.rule_chain_id.as_ref()?.id.clone()));
        let before = self.chains.len();
        self.chains.extend(ids);
        let got = status(copied);
        (got, yes_or(400, self.chains.len() == before + 1))
    }

    fn make_root(&mut self, board: &Board, place: usize) -> (u16, u16) {
        let id = self.chains.get(place).cloned();
        let got = write(board, |tables| {
            chains::make_root(tables, id.as_deref().unwrap_or(NOBODYS)).map(drop)
        });
        let is_known = id.is_some();
        self.root = id.unwrap_or(std::mem::take(&mut self.root));
        (got, yes_or(404, is_known))
    }

    fn delete_chain(&mut self, board: &Board, place: usize) -> (u16, u16) {
        let id = self.chains.get(place).cloned();
        let id = id.unwrap_or_else(|| NOBODYS.to_owned());
        let got = write(board, |tables| chains::delete(tables, &id));
        let is_root = id == self.root;
        let before = self.chains.len();
        self.chains.retain(|chain| is_root || *chain != id);
        let is_gone = self.chains.len() < before;
        (got, yes_or(if is_root { 400 } else { 404 }, is_gone))
    }
}

/// The store holds what the model holds, and nothing else.
fn compare(board: &Board, model: &Model) {
    let tables = board.store.read().expect("it is read");
    let all = records::all::<Device>(&tables).expect("devices");
    assert_eq!(all.len(), model.devices.len());
    for (id, device) in all {
        let wanted = &model.devices[&device.name];
        let owner = board.owner_of(&wanted.token).map(|owner| owner.name);
        assert_eq!(owner.as_ref(), Some(&device.name));
        let customer = wanted
            .customer
            .as_deref()
            .and_then(|title| customer_id(board, title));
        let held = device
            .customer_id
            .map(|id| id.id)
            .filter(|id| id != serial::NOBODY);
        assert_eq!(held, customer, "{}", device.name);
        let (client, shared) = (None, None);
        let question = Question::Values { client, shared };
        let values = answer(board, &device.name, &question)["shared"].clone();
        let known = Some(&wanted.shared).filter(|shared| !shared.is_empty());
        assert_eq!(values, json!(known), "{}", device.name);
        let query = SeriesQuery {
            keys: "x,y".to_owned(),
            start_ts: Some(i64::MIN),
            end_ts: Some(i64::MAX),
            order_by: Some(SortOrder::Ascending),
            use_strict_data_types: Some(true),
            ..SeriesQuery::default()
        };
        let series = series::read(&tables, id, &query).expect("series");
        let points = series.iter().flat_map(|(key, points)| {
            points
                .iter()
                .map(move |point| ((key.clone(), point.ts), point.value.as_i64()))
        });
        let points: BTreeMap<_, _> = points.collect();
        let stored = wanted
            .points
            .iter()
            .map(|(key, value)| (key.clone(), Some(*value)));
        assert_eq!(points, stored.collect());
        let keys: BTreeSet<&String> = wanted.points.keys().map(|(key, _)| key).collect();
        let found = series::keys(&tables, id).expect("keys");
        assert!(found.iter().eq(keys), "{found:?}");
    }
    let titles = records::all::<Customer>(&tables).expect("customers");
    let titles: BTreeSet<String> = titles
        .into_iter()
        .map(|(_, customer)| customer.title)
        .collect();
    assert_eq!(titles, model.customers);
    assert_eq!(chain_ids(board), model.chains);
    let root = chains::root_nodes(&tables)
        .expect("a root")
        .rule_chain_id
        .id;
    assert_eq!(root, model.root);
    for token in ('a'..='f').map(String::from) {
        let is_known = model.devices.values().any(|device| device.token == token);
        assert_eq!(board.owner_of(&token).is_some(), is_known, "{token}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Law: after any calls the store holds what was answered. A copy of its file that is taken between two
    /// calls, as a killed process leaves it, holds the same.
    #[test]
    fn the_store_holds_what_was_answered_also_after_a_kill(
        steps in prop::collection::vec(steps(), 1..60)
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = folder.path().join("0");
        let mut board = open(&file);
        let mut model = Model { chains: chain_ids(&board), ..Model::default() };
        model.root.clone_from(&model.chains[0]);
        for (number, step) in steps.iter().enumerate() {
            let (got, wanted) = take(&board, &mut model, step);
            prop_assert_eq!(got, wanted, "{:?}", step);
            if matches!(step, Step::Kill) {
                let left = folder.path().join((number + 1).to_string());
                std::fs::copy(&file, &left).expect("it is copied");
                board = open(&left);
                file = left;
            }
            compare(&board, &model);
        }
    }
}
