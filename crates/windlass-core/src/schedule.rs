//! When a job type is submitted by itself.

use crate::{Claims, Value};
use chrono::{DateTime, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;

/// `schedule = { cron = "0 3 * * *", timezone = "Asia/Tokyo", … }`
///
/// ```
/// use windlass_core::Schedule;
///
/// let schedule: Schedule = serde_json::from_str(r#"{"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}"#)?;
/// assert_eq!(schedule.timezone.name(), "Asia/Tokyo");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ScheduleDefinition))]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// A cron expression of five fields, or `@daily` and the like.
    pub cron: String,
    /// A time zone of the IANA database; UTC by default.
    #[serde(default = "utc")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = true))]
    pub timezone: Tz,
    /// How long after its firing a job should have ended.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub deadline: Option<Duration>,
    /// What happens with firings that were missed because no scheduler ran.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub missed: Missed,
    /// What happens if the previous job has not ended.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub overlap: Overlap,
    /// The claims of its jobs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    pub claims: BTreeMap<String, OneOrMore>,
    /// The params of its jobs. `{date}` and `{time}` are replaced by those of the firing in its time zone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Json>,
}

/// What happens with firings that were missed because no scheduler ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Missed {
    /// They are skipped.
    Skip,
    /// The last one is run.
    #[default]
    RunOnce,
    /// All of them are run.
    RunAll,
}

/// What happens if the previous job has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// The firing is skipped.
    Skip,
    /// Both run, the older one first.
    #[default]
    Queue,
    /// The previous job is cancelled.
    CancelRunning,
}

/// One value of a claim, or several alternatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// Any of these.
    More(Vec<Json>),
    /// This.
    One(Json),
}

fn utc() -> Tz {
    Tz::UTC
}

impl Schedule {
    /// A cron expression, in UTC.
    ///
    /// ```
    /// use windlass_core::Schedule;
    ///
    /// let nightly = Schedule::new("0 3 * * *").in_timezone(chrono_tz::Asia::Tokyo);
    /// assert_eq!(nightly.timezone, chrono_tz::Asia::Tokyo);
    /// ```
    pub fn new(cron: impl Into<String>) -> Schedule {
        Schedule {
            cron: cron.into(),
            timezone: Tz::UTC,
            deadline: None,
            missed: Missed::default(),
            overlap: Overlap::default(),
            claims: BTreeMap::new(),
            params: BTreeMap::new(),
        }
    }

    /// The same schedule in another time zone.
    pub fn in_timezone(self, timezone: Tz) -> Schedule {
        Schedule { timezone, ..self }
    }

    /// The first firing after a time, if there is one.
    ///
    /// When clocks are set back, an hour occurs twice. A schedule with a fixed time of day fires once then;
    /// an hourly one fires every hour.
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let cron = self.parse().ok()?;
        // The library keeps fractions of a second.
        let after = after.with_nanosecond(0)?;
        let next = |from: DateTime<Tz>| cron.find_next_occurrence(&from, false).ok();
        let local = after.with_timezone(&self.timezone);
        // Within the repeated hour the library may return the first of the two again.
        let hours = (0..=2).map(|hours| next(local + TimeDelta::hours(hours)));
        let once = hours.flatten().find(|time| *time > after);
        let straight = || {
            let unchanged = after.with_timezone(&local.offset().fix());
            let time = cron.find_next_occurrence(&unchanged, false).ok()?;
            let time = time.with_timezone(&self.timezone);
            cron.is_time_matching(&time).unwrap_or(false).then_some(time)
        };
        let again = self.is_hourly().then(straight).flatten();
        once.into_iter().chain(again).min().map(|time| time.with_timezone(&Utc))
    }

    /// The firings that are due now by the policy `missed`, oldest first, and the next future one. `due` is
    /// the first that was not handled yet.
    pub fn due(
        &self,
        due: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> (Vec<DateTime<Utc>>, Option<DateTime<Utc>>) {
        let (first, most) = match self.missed {
            Missed::RunAll => (due, MAX_FIRINGS_AT_ONCE),
            Missed::RunOnce | Missed::Skip => (self.recent(due, now), usize::MAX),
        };
        let (mut times, mut next) = (Vec::new(), Some(first));
        while let Some(time) = next.filter(|time| *time <= now && times.len() < most) {
            times.push(time);
            next = self.next_after(time);
        }
        let late = |time: &DateTime<Utc>| (now - *time).to_std().unwrap_or_default() > ON_TIME;
        match self.missed {
            Missed::RunAll => {}
            Missed::RunOnce => drop(times.drain(..times.len().saturating_sub(1))),
            Missed::Skip => times.retain(|time| !late(time)),
        }
        (times, next)
    }

    /// A recent firing to start from if only the last one counts, so that a year of minutes is not walked.
    fn recent(&self, due: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        let recent = self.next_after(now - TimeDelta::days(2));
        recent.filter(|time| due < *time && *time <= now).unwrap_or(due)
    }

    /// The date of a firing in the schedule's time zone, as `YYYY-MM-DD`.
    pub fn date_at(&self, time: DateTime<Utc>) -> String {
        time.with_timezone(&self.timezone).date_naive().to_string()
    }

    /// The params of a job that is fired at this time.
    pub fn params_at(&self, time: DateTime<Utc>) -> BTreeMap<String, Json> {
        let date = self.date_at(time);
        let time = time.with_timezone(&self.timezone).format("%H:%M").to_string();
        let fill = |value: &Json| match value {
            Json::String(text) => text.replace("{date}", &date).replace("{time}", &time).into(),
            other => other.clone(),
        };
        self.params.iter().map(|(name, value)| (name.clone(), fill(value))).collect()
    }

    /// The claims of its jobs.
    pub fn claims(&self) -> Claims {
        let values = |value: &OneOrMore| match value {
            OneOrMore::More(values) => values.iter().cloned().map(Value::from_json).collect(),
            OneOrMore::One(value) => vec![Value::from_json(value.clone())],
        };
        self.claims.iter().map(|(name, value)| (name.clone(), values(value))).collect()
    }

    /// Its problem, with the field.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        if let Err(error) = self.parse() {
            let detail =
                format!("`{}`: {error}; expected five fields, such as `0 3 * * *`", self.cron);
            return Some(("schedule.cron", detail));
        }
        let epoch = Utc.timestamp_opt(0, 0).single()?;
        if self.next_after(epoch).is_none() {
            return Some(("schedule.cron", format!("`{}` never fires", self.cron)));
        }
        None
    }

    fn parse(&self) -> Result<Cron, croner::errors::CronError> {
        let parser = CronParser::builder();
        parser.seconds(Seconds::Disallowed).year(Year::Disallowed).build().parse(&self.cron)
    }

    fn is_hourly(&self) -> bool {
        let hours = self.cron.split_whitespace().nth(1);
        self.cron.trim() == "@hourly" || hours.is_some_and(|hours| hours.starts_with('*'))
    }
}

/// A firing that is less late than this is on time.
const ON_TIME: Duration = Duration::from_secs(60);
/// Firings handled at once; the rest follows in the next round.
const MAX_FIRINGS_AT_ONCE: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schedule(cron: &str, timezone: &str, more: Json) -> Schedule {
        let mut json = json!({ "cron": cron, "timezone": timezone });
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(json).unwrap()
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// The next times after one, as UTC.
    fn times(cron: &str, timezone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = schedule(cron, timezone, json!({}));
        let mut time = at(after);
        let mut next = || {
            time = schedule.next_after(time).unwrap();
            time.format("%m-%d %H:%M").to_string()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn tokyos_night_is_the_evening_before_in_utc() {
        let nights = times("0 3 * * *", "Asia/Tokyo", "2026-01-01T00:00:00Z", 2);
        assert_eq!(nights, ["01-01 18:00", "01-02 18:00"]);
        assert_eq!(times("@daily", "UTC", "2026-01-01T00:00:00Z", 1), ["01-02 00:00"]);
    }

    #[test]
    fn a_time_that_is_left_out_in_spring_comes_right_after() {
        let days = times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
        assert_eq!(days, ["03-28 01:30", "03-29 01:00", "03-30 00:30"]);
        let hours = times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
        assert_eq!(hours, ["03-29 00:30", "03-29 01:30", "03-29 02:30"]);
    }

    #[test]
    fn a_time_that_comes_twice_in_autumn_is_fired_once_and_an_hour_every_hour() {
        let days = times("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3);
        assert_eq!(days, ["10-24 00:30", "10-25 00:30", "10-26 01:30"]);
        let within = times("30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", 1);
        assert_eq!(within, ["10-26 01:30"]);
        let hours = times("30 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 5);
        let expected = ["10-24 23:30", "10-25 00:30", "10-25 01:30", "10-25 02:30", "10-25 03:30"];
        assert_eq!(hours, expected);
        let quarters = times("*/15 * * * *", "America/New_York", "2026-11-01T05:30:00Z", 6);
        let expected = [
            "11-01 05:45",
            "11-01 06:00",
            "11-01 06:15",
            "11-01 06:30",
            "11-01 06:45",
            "11-01 07:00",
        ];
        assert_eq!(quarters, expected);
    }

    #[test]
    fn missed_times_are_made_up_for_as_said() {
        let due = |missed: &str, now: &str| {
            let schedule = schedule("0 * * * *", "UTC", json!({ "missed": missed }));
            let (times, next) = schedule.due(at("2026-01-01T01:00:00Z"), at(now));
            let hours: Vec<_> = times.iter().map(|time| time.format("%H").to_string()).collect();
            (hours.join(" "), next.unwrap().format("%H").to_string())
        };
        let late = "2026-01-01T03:20:00Z";
        assert_eq!(due("skip", late), (String::new(), "04".to_owned()));
        assert_eq!(due("run-once", late), ("03".to_owned(), "04".to_owned()));
        assert_eq!(due("run-all", late), ("01 02 03".to_owned(), "04".to_owned()));
        let years_late = "2029-01-01T03:20:00Z";
        assert_eq!(due("run-once", years_late), ("03".to_owned(), "04".to_owned()));
        let on_time = "2026-01-01T01:00:02Z";
        for missed in ["skip", "run-once", "run-all"] {
            assert_eq!(due(missed, on_time), ("01".to_owned(), "02".to_owned()));
            assert_eq!(due(missed, "2026-01-01T00:59:59Z"), (String::new(), "01".to_owned()));
        }
    }

    #[test]
    fn params_and_claims_are_filled_in() {
        let more = json!({
            "params": { "day": "{date}", "n": 3 }, "claims": { "county": "*", "years": [1, 2] }
        });
        let schedule = schedule("0 3 * * *", "Asia/Tokyo", more);
        let params = schedule.params_at(at("2026-01-01T18:00:00Z"));
        assert_eq!(params["day"], "2026-01-02");
        assert_eq!(params["n"], 3);
        assert!(crate::claims::is_unrestricted(&schedule.claims()["county"]));
        assert_eq!(schedule.claims()["years"].len(), 2);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let problem = |cron: &str| schedule(cron, "UTC", json!({})).problem();
        assert_eq!(problem("0 3 * * *"), None);
        for wrong in ["3", "0 3 * * * *", "61 * * * *", "0 0 30 2 *", "@never"] {
            assert!(problem(wrong).is_some(), "{wrong}");
        }
    }

    /// The time after any moment is the one after the firing before it: the scheduler tells by it
    /// that a stored time was written by a clock that was ahead.
    #[test]
    fn the_next_time_is_the_same_from_every_moment_before_it() {
        let changes = [
            ("Europe/Berlin", "2026-03-29T01:00:00Z"),
            ("Europe/Berlin", "2026-10-25T01:00:00Z"),
            ("America/New_York", "2026-03-08T07:00:00Z"),
            ("America/New_York", "2026-11-01T06:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
        ];
        for (zone, change) in changes {
            for cron in ["30 2 * * *", "30 1 * * *", "*/15 * * * *", "0 1-3 * * *", "0 * * * *"] {
                let schedule = schedule(cron, zone, json!({}));
                let begin = at(change) - TimeDelta::hours(3);
                let mut stored = schedule.next_after(begin).unwrap();
                for minutes in (0..360).step_by(10) {
                    let now = begin + TimeDelta::minutes(minutes);
                    while stored <= now {
                        stored = schedule.next_after(stored).unwrap();
                    }
                    assert_eq!(schedule.next_after(now), Some(stored), "{cron} {zone} {now}");
                }
            }
        }
    }

    proptest::proptest! {
        /// However the clocks are set: never back, and every minute's schedule every minute.
        #[test]
        fn times_only_go_forward(minutes in 0i64..60 * 24 * 366) {
            let after = at("2026-01-01T00:00:29.750Z") + TimeDelta::minutes(minutes);
            for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"] {
                for cron in ["30 2 * * *", "*/15 * * * *", "0 1-3 * * *"] {
                    let next = schedule(cron, zone, json!({})).next_after(after).unwrap();
                    proptest::prop_assert!(next > after, "{cron} {zone} {after}: {next}");
                }
                let next = schedule("* * * * *", zone, json!({})).next_after(after).unwrap();
                proptest::prop_assert_eq!(next - after, TimeDelta::milliseconds(30_250));
            }
        }
    }
}
