//! A node of a checked, complete tree together with its path, and the problems found on the way.

use std::cell::RefCell;

use muster_judge::Share;
use muster_model::{Micros, Rate};
use muster_plan::Problem;

use crate::Reader;
use crate::check::join;
use crate::language::Form;
use crate::source::{Place, Sources};
use crate::tree::Node;
use crate::units::{self, Demand, Unreadable};

/// Inputs for building a plan besides the tree, and the problems found.
pub(crate) struct Context<'a> {
    sources: &'a Sources,
    pub(crate) reader: &'a dyn Reader,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(sources: &'a Sources, reader: &'a dyn Reader) -> Self {
        Self {
            sources,
            reader,
            problems: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    /// Everything that was found: problems, then warnings.
    pub(crate) fn into_findings(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems.into_inner(), self.warnings.into_inner())
    }
}

#[derive(Clone)]
pub(crate) struct View<'a> {
    context: &'a Context<'a>,
    node: &'a Node,
    path: String,
}

impl<'a> View<'a> {
    pub(crate) fn new(context: &'a Context<'a>, node: &'a Node) -> Self {
        Self {
            context,
            node,
            path: String::new(),
        }
    }

    /// The value of a key, if it stands.
    pub(crate) fn get(&self, key: &str) -> Option<View<'a>> {
        let node = self.node.get(key)?;
        Some(View {
            context: self.context,
            node,
            path: join(&self.path, key),
        })
    }

    /// The items of the list under a key; none if the key is left out.
    pub(crate) fn list(&self, key: &str) -> Vec<View<'a>> {
        self.get(key).map_or_else(Vec::new, |list| {
            let items = list.node.items().iter().enumerate();
            let view = |(at, node)| View {
                context: list.context,
                node,
                path: format!("{}[{at}]", list.path),
            };
            items.map(view).collect()
        })
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, View<'a>)> {
        let entries = self.node.entries().iter();
        entries.map(|entry| {
            let path = join(&self.path, &entry.key);
            (
                entry.key.as_str(),
                View {
                    context: self.context,
                    node: &entry.node,
                    path,
                },
            )
        })
    }

    pub(crate) fn is_map(&self) -> bool {
        self.node.form() == Form::Map
    }

    pub(crate) fn is_list(&self) -> bool {
        self.node.form() == Form::List
    }

    /// The text of a single value; empty for a list or map.
    pub(crate) fn text(&self) -> &'a str {
        self.node.text().unwrap_or_default()
    }

    /// The text of a key; empty if it is left out.
    pub(crate) fn text_of(&self, key: &str) -> &'a str {
        self.get(key).map_or("", |view| view.text())
    }

    pub(crate) fn time(&self, key: &str) -> Option<Micros> {
        self.read(key, units::time)
    }

    pub(crate) fn rate(&self, key: &str) -> Option<Rate> {
        self.read(key, units::rate)
    }

    pub(crate) fn share(&self, key: &str) -> Option<Share> {
        self.read(key, units::percent)
    }

    pub(crate) fn size(&self, key: &str) -> Option<u32> {
        self.read(key, units::size)
    }

    /// The whole number of a key, whose range the check has seen to.
    pub(crate) fn whole<T: TryFrom<u64>>(&self, key: &str) -> Option<T> {
        self.read(key, |text| units::whole(text, 0, u64::MAX))
            .and_then(|n| T::try_from(n).ok())
    }

    /// The value of a key that the scenario itself gives: a default takes the place of the map it is
    /// filled into.
    pub(crate) fn written(&self, key: &str) -> Option<View<'a>> {
        let place = self.node.place;
        self.get(key).filter(|view| view.node.place != place)
    }

    pub(crate) fn factor(&self, key: &str) -> Option<f64> {
        self.read(key, units::factor)
    }

    pub(crate) fn fraction(&self, key: &str) -> Option<f64> {
        self.read(key, units::fraction)
    }

    pub(crate) fn truth(&self, key: &str) -> Option<bool> {
        self.read(key, units::truth)
    }

    pub(crate) fn read<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, Unreadable>,
    ) -> Option<T> {
        let view = self.get(key)?;
        view.accept(read(view.text()))
    }

    /// The value of a key that may be left out, read by a function. The outer option: whether it could be
    /// read; the inner one: whether the key stands.
    pub(crate) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&View<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(key) {
            Some(view) => read(&view).map(Some),
            None => Some(None),
        }
    }

    /// The bound of a rule, read by a function, or `any`.
    pub(crate) fn demand<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, Unreadable>,
    ) -> Option<Demand<T>> {
        self.read(key, |text| units::or_any(text, &read))
    }

    /// The value, or nothing after saying what is wrong with this one.
    pub(crate) fn accept<T>(&self, outcome: Result<T, Unreadable>) -> Option<T> {
        outcome
            .map_err(|unreadable| self.wrong(unreadable.what, &unreadable.help))
            .ok()
    }

    /// Says what is wrong with this value, and what would be right.
    pub(crate) fn wrong(&self, what: impl AsRef<str>, help: &str) {
        let problem = self.problem(self.node.place, what.as_ref(), help);
        self.context.problems.borrow_mut().push(problem);
    }

    /// Says what is wrong with this value, and reads nothing.
    pub(crate) fn refuse<T>(&self, what: impl AsRef<str>, help: &str) -> Option<T> {
        self.wrong(what, help);
        None
    }

    /// Says what is wrong with the value of a key, and reads nothing.
    pub(crate) fn refuse_at<T>(&self, key: &str, what: impl AsRef<str>, help: &str) -> Option<T> {
        self.get(key)?.refuse(what, help)
    }

    /// Says what is wrong with the text of this value, from a character on.
    pub(crate) fn wrong_at(&self, offset: usize, what: impl AsRef<str>, help: &str) {
        let mut place = self.node.place;
        let before = self
            .text()
            .get(..offset)
            .map_or(0, |text| text.chars().count()) as u32;
        if before + 1 < place.length {
            // One more for the opening quote; a text without quotes is off by nothing that shows.
            let quote = place
                .length
                .saturating_sub(self.text().chars().count() as u32)
                / 2;
            place.column += before + quote;
            place.length = 1;
        }
        let problem = self.problem(place, what.as_ref(), help);
        self.context.problems.borrow_mut().push(problem);
    }

    /// Says what is likely a slip, although the plan can run.
    pub(crate) fn warn(&self, what: impl AsRef<str>, help: &str) {
        let problem = self.problem(self.node.place, what.as_ref(), help);
        self.context.warnings.borrow_mut().push(problem);
    }

    /// The place of this value in the sources, such as `scenario.yaml:12`.
    pub(crate) fn place(&self) -> String {
        self.problem(self.node.place, "", "").place()
    }

    fn problem(&self, place: Place, what: &str, help: &str) -> Problem {
        self.context.sources.problem(place, &self.path, what, help)
    }

    /// The bytes of a file that this value names; a reason why it cannot be read is a problem.
    pub(crate) fn file(&self, path: &str) -> Option<Vec<u8>> {
        let bytes = self.reader().file(path).map_err(|reason| {
            let what = format!("{path} cannot be read: {reason}");
            self.wrong(what, "paths are relative to the scenario's file");
        });
        bytes.ok()
    }

    pub(crate) fn reader(&self) -> &'a dyn Reader {
        self.context.reader
    }
}
