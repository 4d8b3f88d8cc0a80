//! Makes the rules of a run from the words of a scenario and the defaults.

use muster_model::Micros;

use crate::{
    Allowance, RuleName, Rules, Scope, SetNames, Share, Slo, SloBound, StabilityBounds, StopIf,
    SwitchedOff, ValidityBounds,
};

/// Collects what the scenario names and fills in the defaults.
#[derive(Debug, Clone)]
pub struct RulesBuilder {
    has_backend: bool,
    common: Demands,
    sets: Vec<NamedSet>,
    validity: ValidityBounds,
    stability: StabilityBounds,
    stop_if: Vec<StopIf>,
    soak: Option<Micros>,
}

/// Demands of a named set that are not common to all.
#[derive(Debug, Clone)]
struct NamedSet {
    name: String,
    demands: Demands,
}

/// Demands of a scenario on its target, each with its scope.
#[derive(Debug, Clone, Default)]
struct Demands {
    named: Vec<Slo>,
    switched_off: Vec<SwitchedOff>,
    left_out: Vec<SwitchedOff>,
}

/// An SLO, and the places of the sets that have it.
struct Member {
    slo: Slo,
    sets: Vec<usize>,
}

impl RulesBuilder {
    pub(crate) fn new(has_backend: bool) -> Self {
        Self {
            has_backend,
            common: Demands::default(),
            sets: Vec::new(),
            validity: ValidityBounds::default(),
            stability: StabilityBounds::default(),
            stop_if: Vec::new(),
            soak: None,
        }
    }

    /// Adds an SLO that the scenario names.
    pub fn slo(mut self, scope: Scope, bound: SloBound) -> Self {
        self.demands().named.push(Slo {
            scope,
            bound,
            named: true,
            except: Vec::new(),
            sets: SetNames::default(),
        });
        self
    }

    /// Switches a rule off in a scope, as `any` does; the verdict reports it.
    pub fn any(mut self, scope: Scope, rule: RuleName) -> Self {
        let off = SwitchedOff { scope, rule };
        self.demands().switched_off.push(off);
        self
    }

    /// Takes a fleet or stream out of the wider rule of that name, without a rule in its place.
    pub fn leave_out(mut self, scope: Scope, rule: RuleName) -> Self {
        let out = SwitchedOff { scope, rule };
        self.demands().left_out.push(out);
        self
    }

    /// Begins a named set of SLOs: demands that are added from now on are on the whole run, and belong to it. Those that
    /// were added before the first set are common to all sets; a set replaces those of the whole run that it names too.
    pub fn set(mut self, name: impl Into<String>) -> Self {
        self.sets.push(NamedSet {
            name: name.into(),
            demands: Demands::default(),
        });
        self
    }

    /// Replaces the bounds on the generator.
    pub fn validity(mut self, bounds: ValidityBounds) -> Self {
        self.validity = bounds;
        self
    }

    /// Replaces the settings of the stability test.
    pub fn stability(mut self, bounds: StabilityBounds) -> Self {
        self.stability = bounds;
        self
    }

    /// Adds a condition that ends the measured phase.
    pub fn stop_if(mut self, condition: StopIf) -> Self {
        self.stop_if.push(condition);
        self
    }

    /// Demands that each resource of the target lasts for this time.
    pub fn soak(mut self, lasts: Micros) -> Self {
        self.soak = Some(lasts);
        self
    }

    /// The rules. Four defaults apply unless the top of the scenario names them or switches them
    /// off: loss 0 (where there is a backend), failure-ratio 0, connected 100 %, disconnects 0. A
    /// rule of a fleet or stream takes it out of the wider rule of the same name. The SLOs of each named set are made so;
    /// one that all sets have stands once.
    pub fn build(self) -> Rules {
        let sets: Vec<Demands> = match self.sets.is_empty() {
            true => vec![self.common.clone()],
            false => {
                let sets = self.sets.iter();
                sets.map(|set| self.common.replaced_by(&set.demands))
                    .collect()
            }
        };
        let names: Vec<String> = self.sets.into_iter().map(|set| set.name).collect();
        let is_off = |off: &&SwitchedOff| sets.iter().all(|set| set.switched_off.contains(off));
        Rules {
            slos: joined(&sets, &names, self.has_backend),
            switched_off: sets[0]
                .switched_off
                .iter()
                .filter(is_off)
                .cloned()
                .collect(),
            sets: names,
            validity: self.validity,
            stability: self.stability,
            stop_if: self.stop_if,
            soak: self.soak,
        }
    }

    /// The demands that are being added to.
    fn demands(&mut self) -> &mut Demands {
        match self.sets.last_mut() {
            Some(set) => &mut set.demands,
            None => &mut self.common,
        }
    }
}

/// The SLOs of all sets, each once, with the names of its sets where it is not common to all.
fn joined(sets: &[Demands], names: &[String], has_backend: bool) -> Vec<Slo> {
    let mut all: Vec<Member> = Vec::new();
    for (at, demands) in sets.iter().enumerate() {
        for slo in demands.slos(has_backend) {
            match all.iter_mut().find(|member| member.slo == slo) {
                Some(member) => member.sets.push(at),
                None => all.push(Member {
                    slo,
                    sets: vec![at],
                }),
            }
        }
    }
    let tagged = all.into_iter().map(|member| {
        let is_common = member.sets.len() == sets.len();
        let of = member.sets.iter().filter(|_| !is_common);
        Slo {
            sets: SetNames::new(of.map(|at| names[*at].clone()).collect()),
            ..member.slo
        }
    });
    tagged.collect()
}

impl Demands {
    /// Adds the demands of a set, in place of those on the whole run that it names too.
    fn replaced_by(&self, set: &Self) -> Self {
        let is_named_too = |rule: RuleName| {
            let mut own = set.placed().map(|(_, own)| own);
            own.any(|own| own.replaces(rule) || rule.replaces(own))
        };
        let is_kept = |scope: &Scope, rule: RuleName| *scope != Scope::Run || !is_named_too(rule);
        let off = |common: &[SwitchedOff], own: &[SwitchedOff]| {
            let kept = common.iter().filter(|off| is_kept(&off.scope, off.rule));
            kept.chain(own).cloned().collect()
        };
        let named = self.named.iter();
        let named = named.filter(|slo| is_kept(&slo.scope, slo.bound.name()));
        Self {
            named: named.chain(&set.named).cloned().collect(),
            switched_off: off(&self.switched_off, &set.switched_off),
            left_out: off(&self.left_out, &set.left_out),
        }
    }

    /// The SLOs: defaults first, then those that the scenario names.
    fn slos(&self, has_backend: bool) -> Vec<Slo> {
        let defaults = self.defaults(has_backend);
        let mut slos: Vec<Slo> = defaults.chain(self.named.iter().cloned()).collect();
        for slo in &mut slos {
            slo.except = self.narrower(slo);
        }
        slos
    }

    fn defaults(&self, has_backend: bool) -> impl Iterator<Item = Slo> {
        let loss = SloBound::Loss(Allowance::Count(0));
        let loss = Some(loss).filter(|_| has_backend);
        let others = [
            SloBound::FailureRatio(Share::ZERO),
            SloBound::Connected(Share::ONE),
            SloBound::Disconnects(Allowance::Count(0)),
        ];
        let all = loss.into_iter().chain(others);
        all.filter(|bound| !self.stands_at_the_top(bound.name()))
            .map(|bound| Slo {
                scope: Scope::Run,
                bound,
                named: false,
                except: Vec::new(),
                sets: SetNames::default(),
            })
    }

    fn stands_at_the_top(&self, rule: RuleName) -> bool {
        let mut all = self.placed();
        all.any(|(scope, name)| *scope == Scope::Run && name.replaces(rule))
    }

    /// The scopes within that of `slo` which have a rule of the same name, or `any`.
    fn narrower(&self, slo: &Slo) -> Vec<Scope> {
        let rule = slo.bound.name();
        let mut scopes: Vec<Scope> = self
            .placed()
            .filter(|(scope, name)| slo.scope.is_narrowed_by(scope, rule) && name.replaces(rule))
            .map(|(scope, _)| scope.clone())
            .collect();
        scopes.dedup();
        scopes
    }

    /// Everything that the scenario says of rules, and where.
    fn placed(&self) -> impl Iterator<Item = (&Scope, RuleName)> {
        let named = self.named.iter().map(|slo| (&slo.scope, slo.bound.name()));
        let off = self.switched_off.iter().chain(&self.left_out);
        named.chain(off.map(|off| (&off.scope, off.rule)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Latency, Percentile};

    fn p99(at_most_ms: u64) -> SloBound {
        SloBound::Latency {
            of: Latency::Response,
            percentile: Percentile::P99,
            at_most: Micros::from_millis(at_most_ms),
        }
    }

    #[test]
    fn a_set_has_the_common_rules_but_for_those_of_the_run_that_it_names() {
        let fleet = Scope::Fleet {
            id: muster_model::FleetId(0),
            name: "meters".to_owned(),
        };
        let rules = Rules::builder(false)
            .slo(Scope::Run, p99(100))
            .slo(fleet.clone(), p99(70))
            .any(Scope::Run, RuleName::Disconnects)
            .set("gold")
            .slo(Scope::Run, p99(50))
            .set("silver")
            .slo(Scope::Run, SloBound::Disconnects(Allowance::Count(3)))
            .build();
        assert_eq!(rules.sets, ["gold", "silver"]);
        let named = |set: &str| -> Vec<(Scope, SloBound)> {
            let of_set = rules.of_set(Some(set)).filter(|slo| slo.named);
            of_set.map(|slo| (slo.scope.clone(), slo.bound)).collect()
        };
        assert_eq!(
            named("gold"),
            [(fleet.clone(), p99(70)), (Scope::Run, p99(50))]
        );
        let three = SloBound::Disconnects(Allowance::Count(3));
        assert_eq!(
            named("silver"),
            [
                (fleet.clone(), p99(70)),
                (Scope::Run, p99(100)),
                (Scope::Run, three)
            ]
        );
        let of_fleet: Vec<&Slo> = rules.slos.iter().filter(|slo| slo.scope == fleet).collect();
        assert_eq!(of_fleet.len(), 1, "a rule of both sets stands once");
        assert!(of_fleet[0].sets.is_all());
        // One set demands what the other switches off.
        assert_eq!(rules.switched_off, []);
    }
}
