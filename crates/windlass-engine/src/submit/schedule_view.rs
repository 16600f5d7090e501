//! The schedules as the command line and the API show them.

use crate::Result;
use crate::engine::Engine;
use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::Schedule;
use windlass_store::ScheduleRow;

/// A schedule: its definition, its stored state and its next times.
///
/// ```no_run
/// # async fn example(engine: &windlass_engine::Engine) -> windlass_engine::Result<()> {
/// for scheduled in engine.schedules().await? {
///     println!("{}: next at {:?}", scheduled.row.job_type, scheduled.next_times.first());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Schedule))]
#[serde(rename_all = "camelCase")]
pub struct Scheduled {
    /// Its state in the store.
    #[serde(flatten)]
    pub row: ScheduleRow,
    /// Its definition in this process's configuration.
    pub schedule: Schedule,
    /// The next times at which it fires unless it is paused.
    pub next_times: Vec<DateTime<Utc>>,
}

/// Number of next times shown.
const NEXT_TIMES_SHOWN: usize = 3;

impl Engine {
    /// The schedules in the store that this process has a definition for.
    ///
    /// # Errors
    /// The store fails.
    pub async fn schedules(&self) -> Result<Vec<Scheduled>> {
        let rows = self.store().schedules().await?.into_iter();
        Ok(rows.filter_map(|row| self.schedule_view(row)).collect())
    }

    fn schedule_view(&self, row: ScheduleRow) -> Option<Scheduled> {
        let schedule = self.config().jobs.get(&row.job_type)?.schedule.clone()?;
        let next = |time: &_| schedule.next_after(*time);
        let next_times = std::iter::successors(row.next_at, next).take(NEXT_TIMES_SHOWN).collect();
        Some(Scheduled { row, schedule, next_times })
    }
}
