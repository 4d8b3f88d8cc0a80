//! Makes the rules of a run from the words of a scenario and the defaults.

use muster_model::Micros;

use crate::{
    Allowance, RuleName, Rules, Scope, Share, Slo, SloBound, StabilityBounds, StopIf, SwitchedOff,
    ValidityBounds,
};

/// Collects what the scenario names and fills in the defaults.
#[derive(Debug, Clone)]
pub struct RulesBuilder {
    has_backend: bool,
    named: Vec<Slo>,
    switched_off: Vec<SwitchedOff>,
    left_out: Vec<SwitchedOff>,
    validity: ValidityBounds,
    stability: StabilityBounds,
    stop_if: Vec<StopIf>,
    soak: Option<Micros>,
}

impl RulesBuilder {
    pub(crate) fn new(has_backend: bool) -> Self {
        Self {
            has_backend,
            named: Vec::new(),
            switched_off: Vec::new(),
            left_out: Vec::new(),
            validity: ValidityBounds::default(),
            stability: StabilityBounds::default(),
            stop_if: Vec::new(),
            soak: None,
        }
    }

    /// Adds an SLO that the scenario names.
    pub fn slo(mut self, scope: Scope, bound: SloBound) -> Self {
        self.named.push(Slo {
            scope,
            bound,
            named: true,
            except: Vec::new(),
        });
        self
    }

    /// Switches a rule off in a scope, as `any` does; the verdict reports it.
    pub fn any(mut self, scope: Scope, rule: RuleName) -> Self {
        self.switched_off.push(SwitchedOff { scope, rule });
        self
    }

    /// Takes a fleet or stream out of the wider rule of that name, without a rule in its place.
    pub fn leave_out(mut self, scope: Scope, rule: RuleName) -> Self {
        self.left_out.push(SwitchedOff { scope, rule });
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
    /// rule of a fleet or stream takes it out of the wider rule of the same name.
    pub fn build(self) -> Rules {
        let defaults = self.defaults();
        let mut slos: Vec<Slo> = defaults.chain(self.named.iter().cloned()).collect();
        for slo in &mut slos {
            slo.except = self.narrower(slo);
        }
        Rules {
            slos,
            switched_off: self.switched_off,
            validity: self.validity,
            stability: self.stability,
            stop_if: self.stop_if,
            soak: self.soak,
        }
    }

    fn defaults(&self) -> impl Iterator<Item = Slo> {
        let loss = SloBound::Loss(Allowance::Count(0));
        let loss = Some(loss).filter(|_| self.has_backend);
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
