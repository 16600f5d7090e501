//! The timetable: every schedule as the command line and the API show it.

use crate::Result;
use crate::engine::Engine;
use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::Schedule;
use windlass_store::ScheduleRow;

/// A schedule: what was said of it, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Schedule))]
#[serde(rename_all = "camelCase")]
pub struct Scheduled {
    /// Where it stands.
    #[serde(flatten)]
    pub row: ScheduleRow,
    /// Its definition, as this process has it.
    pub schedule: Schedule,
    /// The next times that it will be fired at, as long as it is not paused.
    pub next_times: Vec<DateTime<Utc>>,
}

/// How many times ahead are shown.
const AHEAD: usize = 3;

impl Engine {
    /// The schedules that the store knows and this process has a definition of.
    pub async fn schedules(&self) -> Result<Vec<Scheduled>> {
        let rows = self.store().schedules().await?.into_iter();
        Ok(rows.filter_map(|row| self.scheduled(row)).collect())
    }

    fn scheduled(&self, row: ScheduleRow) -> Option<Scheduled> {
        let schedule = self.config().jobs.get(&row.job_type)?.schedule.clone()?;
        let next = |time: &_| schedule.next_after(*time);
        let next_times = std::iter::successors(row.next_at, next).take(AHEAD).collect();
        Some(Scheduled { row, schedule, next_times })
    }
}
