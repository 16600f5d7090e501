//! The one `impl Store`, written once for both backends, whose modules have the same names.

/// Implements [`Store`](crate::Store) by the functions of the modules beside the invocation.
macro_rules! door {
    ($store:ty) => {
        #[async_trait::async_trait]
        impl crate::Store for $store {
            async fn migrate(&self) -> Result<()> {
                migrate::migrate(self).await
            }

            async fn submit(&self, job: NewJob) -> Result<Submitted> {
                submit::submit(self, job).await
            }

            async fn job(&self, id: JobId) -> Result<Option<Job>> {
                look::job(self, id).await
            }

            async fn status(&self, id: JobId) -> Result<Option<JobStatus>> {
                look::status(self, id).await
            }

            async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>> {
                look::jobs(self, filter).await
            }

            async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>> {
                look::owners(self, jobs).await
            }

            async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>> {
                look::open_jobs(self, submitted_by, limit).await
            }

            async fn stats(&self) -> Result<Stats> {
                look::stats(self).await
            }

            async fn pinned(&self, id: JobId) -> Result<Option<Pinned>> {
                look::pinned(self, id).await
            }

            async fn chunks(
                &self,
                job: JobId,
                status: Option<ChunkStatus>,
                after: Option<i64>,
                limit: u32,
            ) -> Result<Vec<ChunkRow>> {
                look::chunks(self, job, status, after, limit).await
            }

            async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>> {
                look::segments(self, job).await
            }

            async fn hours(
                &self,
                age: Duration,
                submitted_by: Option<&str>,
                job_types: Option<&[String]>,
            ) -> Result<Vec<Hour>> {
                digest::hours(self, age, submitted_by, job_types).await
            }

            async fn cells(&self, job: JobId, width: i64) -> Result<Vec<Cell>> {
                digest::cells(self, job, width).await
            }

            async fn pace(&self, job: JobId, stretch: Duration) -> Result<Vec<Pace>> {
                digest::pace(self, job, stretch).await
            }

            async fn durations(&self, job: JobId) -> Result<Vec<Took>> {
                digest::durations(self, job).await
            }

            async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>> {
                digest::slowest(self, job, limit).await
            }

            async fn letter_groups(&self, filter: &LetterFilter) -> Result<Vec<LetterGroup>> {
                letters::groups(self, filter).await
            }

            async fn claim_segments(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedSegment>> {
                load::claim(self, by, limit).await
            }

            async fn load(&self, page: Page) -> Result<Kept> {
                load::load(self, page).await
            }

            async fn release_segment(
                &self,
                lease: SegmentLease,
                error: Option<&str>,
                attempt: bool,
                wait: Duration,
            ) -> Result<Kept> {
                load::release(self, lease, error, attempt, wait).await
            }

            async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<Kept> {
                load::fail(self, lease, error).await
            }

            async fn claim_chunks(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedChunk>> {
                work::claim(self, by, limit).await
            }

            async fn confirm(&self, leases: &[Lease]) -> Result<Vec<Standing>> {
                lease::confirm(self, leases).await
            }

            async fn heartbeat(
                &self,
                chunks: &[Beat],
                segments: &[SegmentLease],
            ) -> Result<Vec<Standing>> {
                lease::heartbeat(self, chunks, segments).await
            }

            async fn add_letters(&self, lease: Lease, letters: &[NewLetter]) -> Result<Kept> {
                letters::add(self, lease, letters).await
            }

            async fn complete(
                &self,
                lease: Lease,
                progress: &Progress,
                settled: &[String],
            ) -> Result<Kept> {
                let ending = Ending::Completed { settled: settled.to_vec(), part: None };
                work::end(self, lease, progress, ending).await
            }

            async fn complete_part(
                &self,
                lease: Lease,
                progress: &Progress,
                part: &NewPart,
            ) -> Result<Kept> {
                let ending = Ending::Completed { settled: Vec::new(), part: Some(part.clone()) };
                work::end(self, lease, progress, ending).await
            }

            async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>> {
                parts::list(self, job, after, limit).await
            }

            async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<Kept> {
                parts::put_merged(self, lease, merged).await
            }

            async fn family(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
                parts::family(self, root).await
            }

            async fn remove_parts(&self, job: JobId) -> Result<()> {
                parts::remove(self, job).await
            }

            async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<bool> {
                work::complete_together(self, chunks).await
            }

            async fn release(
                &self,
                lease: Lease,
                progress: &Progress,
                error: Option<&str>,
                attempt: bool,
                wait: Duration,
            ) -> Result<Kept> {
                work::release(self, lease, progress, error, attempt, wait).await
            }

            async fn fail(
                &self,
                lease: Lease,
                progress: &Progress,
                error: &str,
                fail_job: bool,
                settled: &[String],
            ) -> Result<Kept> {
                work::end(self, lease, progress, Ending::failed(error, fail_job, settled)).await
            }

            async fn rescue(&self) -> Result<u64> {
                lease::rescue(self).await
            }

            async fn pause(&self, job: JobId, reason: Option<&str>) -> Result<JobStatus> {
                steer::steer(
                    self,
                    job,
                    Steering::Pause { reason: reason.map(crate::values::clean) },
                )
                .await
            }

            async fn resume(&self, job: JobId) -> Result<JobStatus> {
                steer::steer(self, job, Steering::Resume).await
            }

            async fn cancel(&self, job: JobId) -> Result<JobStatus> {
                steer::steer(self, job, Steering::Cancel).await
            }

            async fn retry(&self, job: JobId) -> Result<JobStatus> {
                steer::steer(self, job, Steering::Retry).await
            }

            async fn claim_cancelled(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedChunk>> {
                steer::claim_cancelled(self, by, limit).await
            }

            async fn end_cancelled(
                &self,
                lease: Lease,
                progress: &Progress,
                settled: &[String],
            ) -> Result<Kept> {
                let ending = Ending::Cancelled { settled: settled.to_vec() };
                work::end(self, lease, progress, ending).await
            }

            async fn claim_cancelled_merges(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<SegmentLease>> {
                steer::claim_cancelled_merges(self, by, limit).await
            }

            async fn end_cancelled_merge(
                &self,
                lease: SegmentLease,
                note: Option<&str>,
            ) -> Result<Kept> {
                load::cancel(self, lease, note.map(crate::values::clean)).await
            }

            async fn discardable(
                &self,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<(JobId, String)>> {
                steer::discardable(self, connections, limit).await
            }

            async fn discarded(&self, job: JobId) -> Result<()> {
                steer::discarded(self, job).await
            }

            async fn hold(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool> {
                control::hold(self, subject, &crate::values::clean(reason), wait).await
            }

            async fn stop(&self, subject: &str, stopped: bool) -> Result<()> {
                control::stop(self, subject, stopped).await
            }

            async fn set_throughput(
                &self,
                subject: &str,
                workers: Option<i64>,
                rate: Option<i64>,
            ) -> Result<()> {
                control::set_throughput(self, subject, workers, rate).await
            }

            async fn controls(&self) -> Result<Vec<Control>> {
                control::controls(self).await
            }

            async fn surplus(&self) -> Result<Vec<Lease>> {
                control::surplus(self).await
            }

            async fn reserve(&self, job: JobId, items: i64, most: Duration) -> Result<Duration> {
                control::reserve(self, job, items, most).await
            }

            async fn beat_worker(&self, by: &Capabilities, slots: i64) -> Result<()> {
                control::beat_worker(self, by, slots).await
            }

            async fn forget_worker(&self, name: &str) -> Result<()> {
                control::forget_worker(self, name).await
            }

            async fn workers(&self) -> Result<Vec<WorkerRow>> {
                control::workers(self).await
            }

            async fn now(&self) -> Result<DateTime<Utc>> {
                schedule::now(self).await
            }

            async fn put_schedule(
                &self,
                job_type: &str,
                spec: &str,
                next_at: Option<DateTime<Utc>>,
            ) -> Result<()> {
                schedule::put(self, job_type, spec, next_at).await
            }

            async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
                schedule::list(self).await
            }

            async fn fired(
                &self,
                job_type: &str,
                from: DateTime<Utc>,
                to: Option<DateTime<Utc>>,
                fired: Option<(DateTime<Utc>, JobId)>,
            ) -> Result<bool> {
                schedule::fired(self, job_type, from, to, fired).await
            }

            async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()> {
                schedule::fail(self, job_type, &crate::values::clean(error)).await
            }

            async fn pause_schedule(
                &self,
                job_type: &str,
                paused: bool,
                next_at: Option<DateTime<Utc>>,
            ) -> Result<bool> {
                schedule::pause(self, job_type, paused, next_at).await
            }

            async fn graph(&self, job: JobId, limit: u32) -> Result<Vec<Linked>> {
                dependents::graph(self, job, limit).await
            }

            async fn meetings(&self, limit: u32) -> Result<Vec<MeetingRow>> {
                dependents::meetings(self, limit).await
            }

            async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>> {
                dependents::triggers(self, limit).await
            }

            async fn claim_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>> {
                dependents::claim_triggers(self, limit, lease).await
            }

            async fn triggered(&self, id: JobId) -> Result<()> {
                dependents::triggered(self, id).await
            }

            async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()> {
                dependents::fail_trigger(self, id, error, wait).await
            }

            async fn letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>> {
                letters::list(self, filter).await
            }

            async fn redrivable(&self, filter: &LetterFilter) -> Result<Vec<RedriveRoot>> {
                letters::redrivable(self, filter).await
            }

            async fn redrive(
                &self,
                original: JobId,
                filter: &LetterFilter,
                job: NewJob,
            ) -> Result<Option<(JobId, u64)>> {
                letters::redrive(self, original, filter, job).await
            }

            async fn mark_letters(&self, filter: &LetterFilter, to: LetterStatus) -> Result<u64> {
                letters::mark(self, filter, to).await
            }

            async fn raise(&self, alert: &NewAlert) -> Result<bool> {
                alerts::raise(self, alert).await
            }

            async fn open_alerts(&self, kind: AlertKind) -> Result<Vec<(String, i64)>> {
                alerts::open(self, kind).await
            }

            async fn clear_alert(&self, kind: AlertKind, subject: &str) -> Result<()> {
                alerts::clear(self, kind, subject).await
            }

            async fn occurrences(&self, within: Duration, limit: u32) -> Result<Vec<Occurrence>> {
                alerts::occurrences(self, within, limit).await
            }

            async fn letters_by_type(&self, most: i64) -> Result<Vec<(String, i64)>> {
                alerts::letters_by_type(self, most).await
            }

            async fn unworked(&self) -> Result<Vec<Unworked>> {
                alerts::unworked(self).await
            }

            async fn claim_alert(&self, lease: Duration) -> Result<Option<Alert>> {
                alerts::claim(self, lease).await
            }

            async fn settle_alert(
                &self,
                id: Uuid,
                attempts: u32,
                error: Option<&str>,
                wait: Duration,
                patience: Duration,
            ) -> Result<Option<Delivery>> {
                let error = error.map(crate::values::clean);
                alerts::settle(self, id, attempts, error.as_deref(), wait, patience).await
            }

            async fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>> {
                alerts::list(self, filter).await
            }

            async fn remove_alerts(&self, age: Duration) -> Result<u64> {
                alerts::remove(self, age).await
            }

            async fn job_types(&self) -> Result<Vec<String>> {
                prune::job_types(self).await
            }

            async fn prunable(
                &self,
                job_type: &str,
                age: Duration,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<JobId>> {
                prune::jobs(self, sql!("prunable"), job_type, age, connections, limit).await
            }

            async fn remove_chunks(&self, job: JobId) -> Result<u64> {
                // Segments first: a job without them is known to be pruned.
                prune::remove_segments(self, job).await?;
                let removed = prune::remove_chunks(self, job).await?;
                parts::remove(self, job).await?;
                prune::close(self, job).await?;
                Ok(removed)
            }

            async fn expired(
                &self,
                job_type: &str,
                age: Duration,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<JobId>> {
                prune::jobs(self, sql!("expired"), job_type, age, connections, limit).await
            }

            async fn close(&self, job: JobId, age: Duration) -> Result<bool> {
                prune::expire(self, job, age).await
            }

            async fn remove(&self, job: JobId) -> Result<u64> {
                prune::remove_segments(self, job).await?;
                let removed = prune::remove_chunks(self, job).await?;
                prune::remove(self, job).await?;
                Ok(removed)
            }

            async fn remove_letters(&self, job_type: &str, age: Duration) -> Result<u64> {
                prune::remove_letters(self, job_type, age).await
            }

            async fn changed(&self, at_most: Duration) {
                wait::changed(self, at_most).await
            }
        }
    };
}

pub(crate) use door;
