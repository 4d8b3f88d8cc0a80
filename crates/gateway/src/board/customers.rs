//! Customers of the tenant.

use muster_platform::board_rest::{Customer, EntityId, EntityType};
use redb::WriteTransaction;

use super::records;
use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::Tables;

/// Creates a customer, or changes the one whose id it has.
pub(super) fn save(tables: &WriteTransaction, mut customer: Customer) -> Answer<Customer> {
    if customer.title.trim().is_empty() {
        return Err(Refusal::bad_request("Customer title should be specified!"));
    }
    let id = match &customer.id {
        Some(id) => {
            let id = Serial::parse(&id.id)?;
            records::get::<Customer>(tables, id)?;
            id
        }
        None => records::next_serial(tables)?,
    };
    let other = records::named::<Customer>(tables, &customer.title)?;
    if other.is_some_and(|other| other != id) {
        let what = "Customer with such title already exists!";
        return Err(Refusal::bad_request(what));
    }
    customer.id = Some(entity_id(id));
    records::put(tables, id, &customer)?;
    Ok(customer)
}

/// Returns the customer of a title.
pub(super) fn titled(tables: &impl Tables, title: &str) -> Answer<Customer> {
    let id = records::named::<Customer>(tables, title)?;
    records::get(tables, id.ok_or_else(Refusal::not_found)?)
}

/// Forgets a customer; its devices then have none.
pub(super) fn delete(tables: &WriteTransaction, id: &str) -> Answer<()> {
    let id = Serial::parse(id)?;
    records::remove::<Customer>(tables, id)?;
    super::devices::take_from(tables, &entity_id(id))
}

/// Returns the id of a customer that is there.
pub(super) fn known(tables: &impl Tables, id: &str) -> Answer<EntityId> {
    let id = Serial::parse(id)?;
    records::get::<Customer>(tables, id)?;
    Ok(entity_id(id))
}

fn entity_id(id: Serial) -> EntityId {
    EntityId::new(EntityType::Customer, &id.uuid())
}
