//! Figures of a page that Prometheus would read.

use muster_model::{Micros, Resource, ResourceUnit};
use muster_plan::{PagePlan, PageSeries};

use super::{Growth, UsageError, UsageSource};
use crate::page::CounterPage;
use crate::prometheus::samples;

/// Samples figures of a page.
#[derive(Debug)]
pub struct PageUsage {
    page: CounterPage,
    plan: PagePlan,
    resources: Vec<Resource>,
    growths: Vec<Growth>,
}

impl PageUsage {
    /// The figures of a page; nothing is read yet.
    pub fn new(entry: &str, plan: &PagePlan) -> Self {
        let resources = plan.series.iter().map(|series| Resource {
            entry: entry.to_owned(),
            name: series.name.clone(),
            unit: unit(series),
            limit: series.limit,
        });
        Self {
            page: CounterPage::new(&plan.url.to_string()),
            resources: resources.collect(),
            growths: vec![Growth::default(); plan.series.len()],
            plan: plan.clone(),
        }
    }

    fn values(&mut self, now: Micros, text: &str) -> Result<Vec<Option<f64>>, UsageError> {
        let sums: Vec<Option<f64>> = sums(&self.plan.series, text);
        let absent = self.plan.series.iter().zip(&sums);
        let absent = absent.filter(|(_, sum)| sum.is_none());
        let absent: Vec<String> = absent.map(|(of, _)| format!("`{}`", of.name)).collect();
        if absent.len() == sums.len() {
            return Err(UsageError::NoSample {
                url: self.plan.url.to_string(),
                series: absent.join(", "),
            });
        }
        let all = self.plan.series.iter().zip(&mut self.growths).zip(sums);
        let values = all.map(|((series, growth), sum)| match series.is_rate {
            true => growth.per_second(now, sum?),
            false => sum,
        });
        Ok(values.collect())
    }
}

impl UsageSource for PageUsage {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn sample(&mut self, now: Micros) -> Result<Vec<Option<f64>>, UsageError> {
        let text = self.page.read()?;
        self.values(now, &text)
    }
}

/// The sum of the samples that each figure selects; none where it selects none.
fn sums(series: &[PageSeries], text: &str) -> Vec<Option<f64>> {
    let mut sums = vec![None; series.len()];
    for sample in samples(text).filter(|sample| sample.value.is_finite()) {
        for (of, sum) in series.iter().zip(&mut sums) {
            if of
                .selector
                .selects(sample.name, |label| sample.label(label))
            {
                *sum = Some(sum.unwrap_or(0.0) + sample.value);
            }
        }
    }
    sums
}

/// The unit that a metric has by its name, as Prometheus recommends names.
fn unit(of: &PageSeries) -> ResourceUnit {
    let metric = of.selector.metric.as_str();
    let name = metric.strip_suffix("_total").unwrap_or(metric);
    match (of.is_rate, name) {
        (false, name) if name.ends_with("_bytes") => ResourceUnit::Bytes,
        (false, _) => ResourceUnit::Number,
        (true, name) if name.ends_with("_bytes") => ResourceUnit::BytesPerSecond,
        (true, name) if name.ends_with("cpu_seconds") => ResourceUnit::Cores,
        (true, _) => ResourceUnit::PerSecond,
    }
}

#[cfg(test)]
mod tests {
    use muster_plan::{Selector, WebAddress};

    use super::*;

    fn usage(all: &[(&str, bool)]) -> PageUsage {
        let series = all.iter().map(|(selector, is_rate)| PageSeries {
            name: (*selector).to_owned(),
            selector: Selector::parse(selector).expect("a selector"),
            is_rate: *is_rate,
            limit: None,
        });
        let url = WebAddress {
            is_tls: false,
            host: "h".to_owned(),
            port: None,
            path: "/metrics".to_owned(),
        };
        let series = series.collect();
        PageUsage::new("jvm", &PagePlan { url, series })
    }

    #[test]
    fn samples_are_selected_and_summed_and_counters_become_rates() {
        let mut usage = usage(&[
            ("used_bytes{area=\"heap\"}", false),
            ("process_cpu_seconds_total", true),
            ("absent", false),
        ]);
        let page = |used: u32, cpu: f64| {
            format!(
                "used_bytes{{area=\"heap\",id=\"a\"}} {used}\nused_bytes{{area=\"heap\",id=\"b\"}} 5\n\
                     used_bytes{{area=\"other\"}} 900\nprocess_cpu_seconds_total {cpu}\n"
            )
        };
        let units: Vec<ResourceUnit> = usage.resources().iter().map(|of| of.unit).collect();
        let expected = [
            ResourceUnit::Bytes,
            ResourceUnit::Cores,
            ResourceUnit::Number,
        ];
        assert_eq!(units, expected);
        let first = usage
            .values(Micros::from_secs(1), &page(10, 3.0))
            .expect("samples");
        assert_eq!(first, [Some(15.0), None, None]);
        let second = usage
            .values(Micros::from_secs(3), &page(20, 4.0))
            .expect("samples");
        assert_eq!(second, [Some(25.0), Some(0.5), None]);
    }

    #[test]
    fn a_page_without_any_of_the_samples_is_an_error_that_names_them() {
        let error = usage(&[("a", false), ("b", true)]).values(Micros::ZERO, "c 1\na NaN\n");
        let error = error.expect_err("no sample").to_string();
        assert!(
            error.contains("http://h/metrics: it has no sample of `a`, `b`"),
            "{error}"
        );
    }
}
