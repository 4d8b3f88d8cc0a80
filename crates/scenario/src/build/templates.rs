//! Templates of a fleet, and which variables they may use.

use std::ops::Range;

use muster_load::{
    Bounds, Names, Octets, OctetsError, Scope, Table, Template, TemplateError, needs_escapes,
};
use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};

use crate::nearest::nearest;
use crate::view::View;

pub(super) struct Variables<'a> {
    /// `${id}`.
    pub(super) names: &'a Names,
    /// `${index}` of the first and the last device.
    pub(super) index: (u32, u32),
    /// `${tenant}`; empty if there is none.
    pub(super) tenant: &'a str,
    pub(super) table: Option<&'a Table>,
    /// The file of the columns, as the scenario names it.
    pub(super) file: &'a str,
}

/// Variables that are the same for every message of a device.
const OF_DEVICE: [&str; 3] = ["id", "index", "tenant"];
/// Variables that differ from message to message.
const OF_MESSAGE: [&str; 12] = [
    "seq",
    "due_ms",
    "due_us",
    "due_iso",
    "unique_ms",
    "stamp",
    "run",
    "normal",
    "uniform",
    "int",
    "hex",
    "choice",
];

/// The place of a row of a table's file: ` (meters.csv:5)`.
pub(super) fn line(file: &str, table: &Table, row: u32) -> String {
    format!(" ({file}:{})", table.line(row as usize))
}

/// Returns true if a variable of this name stands for something else than a column.
pub(super) fn is_built_in(name: &str) -> bool {
    OF_DEVICE.contains(&name) || OF_MESSAGE.contains(&name)
}

/// Returns true if a variable, as it is written, differs from message to message.
pub(super) fn differs_by_message(variable: &str) -> bool {
    let name = variable.trim_start_matches("${").trim_end_matches('}');
    let name = name.strip_prefix("json:").unwrap_or(name);
    let name = name.split(':').next().unwrap_or_default();
    OF_MESSAGE.contains(&name) && name != "run"
}

/// A template that is filled in once per device: a topic, a user name, a will.
pub(super) fn device_template(view: &View<'_>, variables: &Variables<'_>) -> Option<Template> {
    template_of(view, view.text(), variables)
}

/// A template that is filled in once per device, of a text that is not the view's own.
pub(super) fn template_of(
    view: &View<'_>,
    text: &str,
    variables: &Variables<'_>,
) -> Option<Template> {
    let template = parse(view, text)?;
    let stray = template.names().find(|(name, _)| OF_MESSAGE.contains(name));
    if let Some((name, offset)) = stray {
        let what = match name {
            "run" => "`${run}` differs from run to run".to_owned(),
            name => format!("`${{{name}}}` differs from message to message"),
        };
        view.wrong_at(
            offset,
            what,
            "here only ${id}, ${index}, ${tenant} and columns of `data`",
        );
        return None;
    }
    variables.know(view, &template, &[]).then_some(template)
}

/// A template that is filled in for each message.
pub(super) fn message_template(view: &View<'_>, variables: &Variables<'_>) -> Option<Template> {
    message_template_of(view, view.text(), variables)
}

/// A template that is filled in for each message, of a text that is not the view's own.
pub(super) fn message_template_of(
    view: &View<'_>,
    text: &str,
    variables: &Variables<'_>,
) -> Option<Template> {
    let template = parse(view, text)?;
    variables
        .know(view, &template, &OF_MESSAGE)
        .then_some(template)
}

fn parse(view: &View<'_>, text: &str) -> Option<Template> {
    Template::parse(text)
        .map_err(|error| refuse(view, &error))
        .ok()
}

fn listed(names: &[&str]) -> String {
    let written: Vec<String> = names.iter().map(|name| format!("${{{name}}}")).collect();
    written.join(", ")
}

pub(super) fn refuse(view: &View<'_>, error: &TemplateError) {
    view.wrong_at(error.offset, &error.what, &error.hint);
}

impl Variables<'_> {
    /// Returns whether every variable of a template has a value, given by its device or `further`.
    fn know(&self, view: &View<'_>, template: &Template, further: &[&str]) -> bool {
        let columns = self.table.map_or(&[][..], Table::columns);
        let unknown = template
            .columns()
            .find(|(name, _)| !columns.iter().any(|c| c == name));
        if let Some((name, offset)) = unknown {
            let known = OF_DEVICE.into_iter().chain(further.iter().copied());
            let known: Vec<&str> = known.chain(columns.iter().map(String::as_str)).collect();
            let meant = nearest(name, known.iter().copied());
            let help = match (meant, self.table) {
                (Some(meant), _) => format!("did you mean `${{{meant}}}`?"),
                (None, Some(_)) => format!("known here: {}", listed(&known)),
                (None, None) => format!(
                    "known here: {}; a column needs a table: `data: devices.csv`",
                    listed(&known)
                ),
            };
            view.wrong_at(offset, format!("`${{{name}}}` is no variable"), &help);
            return false;
        }
        let tenant = template.names().find(|(name, _)| *name == "tenant");
        if let (Some((_, offset)), "") = (tenant, self.tenant) {
            view.wrong_at(
                offset,
                "`${tenant}` has no value",
                "give the fleet a `tenant`",
            );
            return false;
        }
        true
    }

    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            name: self.names.lengths(self.index.0, self.index.1),
            name_in_json: self.names.json_lengths(self.index.0, self.index.1),
            index: self.index,
            tenant: self.tenant,
            table: self.table,
            ..Bounds::default()
        }
    }

    pub(super) fn name(&self, place: u32) -> String {
        let mut name = String::new();
        self.names
            .render(self.index.0.saturating_add(place), &mut name);
        name
    }

    /// The text of a template for a device, by its place in the fleet.
    pub(super) fn render(&self, template: &Template, place: u32) -> String {
        self.render_called(template, place, None)
    }

    /// The same of a link by its first device; `name` is the name of the link, if it has one.
    pub(super) fn render_called(
        &self,
        template: &Template,
        place: u32,
        name: Option<&str>,
    ) -> String {
        let own = || self.name(place);
        let name = name.map_or_else(own, str::to_owned);
        text(template, &self.scope(place, &name))
    }

    /// The text of a name for a device that has none yet, with an explicit index.
    pub(super) fn render_as(&self, template: &Template, place: u32, index: u32) -> String {
        let scope = Scope {
            index,
            ..self.scope(place, "")
        };
        text(template, &scope)
    }

    /// The bytes of a device, by its place in the fleet.
    pub(super) fn octets(&self, octets: &Octets, place: u32) -> Result<Vec<u8>, OctetsError> {
        let (name, mut bytes) = (self.name(place), Vec::new());
        octets.render(&self.scope(place, &name), place, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns true if a value of a variable needs escapes in a string of JSON.
    pub(super) fn need_escapes(&self, name: &str) -> bool {
        match name {
            "id" => self.names.need_escapes(),
            "tenant" => needs_escapes(self.tenant),
            column => {
                let mut cells = self
                    .table
                    .into_iter()
                    .flat_map(|table| table.column(column));
                cells.any(needs_escapes)
            }
        }
    }

    /// The device that a text of a template belongs to, in words, with its row: ` of device 3
    /// (meters.csv:5)`; nothing where all devices have one text.
    pub(super) fn owner(&self, template: Option<&Template>, place: u32) -> String {
        let variables = template.map(|template| template.names().count());
        if variables == Some(0) {
            return String::new();
        }
        let uses_row = template.is_some_and(|template| {
            let is_listed = matches!(self.names, Names::Listed(_));
            let mut names = template.names();
            template.columns().next().is_some() || (is_listed && names.any(|(it, _)| it == "id"))
        });
        let row = if uses_row {
            self.line(place)
        } else {
            String::new()
        };
        let index = u64::from(self.index.0) + u64::from(place);
        format!(" of device {index}{row}")
    }

    /// The place of a row: ` (meters.csv:5)`; nothing without a table.
    pub(super) fn line(&self, row: u32) -> String {
        let line = self.table.map(|table| line(self.file, table, row));
        line.unwrap_or_default()
    }

    /// The devices whose texts of a template have to be looked at. Names by formula differ in digits
    /// only, so the longest one stands for all; rows of a table differ in any way.
    pub(super) fn places(&self, template: &Template) -> Range<u32> {
        let is_listed = matches!(self.names, Names::Listed(_));
        let has_name = || template.names().any(|(name, _)| name == "id");
        self.some_places(template.columns().next().is_some() || (is_listed && has_name()))
    }

    pub(super) fn places_of(&self, octets: &Octets) -> Range<u32> {
        match octets.source_template() {
            Some(template) => self.places(template),
            None => self.some_places(true),
        }
    }

    pub(super) fn named_places(&self) -> Range<u32> {
        match self.names {
            Names::Formula(_) => 0..1,
            Names::Listed(_) => self.some_places(true),
        }
    }

    fn some_places(&self, are_all: bool) -> Range<u32> {
        let devices = self.index.1 - self.index.0 + 1;
        match are_all {
            true => 0..devices,
            false => devices - 1..devices,
        }
    }

    fn scope<'b>(&'b self, place: u32, name: &'b str) -> Scope<'b> {
        let id = MessageId {
            run: RunId(0),
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 0,
        };
        Scope {
            seed: 0,
            id,
            due: Micros::ZERO,
            wall_ms_at_t0: 0,
            name,
            index: self.index.0.saturating_add(place),
            tenant: self.tenant,
            columns: self.table.and_then(|table| table.row(place as usize)),
            unique: None,
        }
    }
}

fn text(template: &Template, scope: &Scope<'_>) -> String {
    let mut text = Vec::new();
    template.render(scope, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
