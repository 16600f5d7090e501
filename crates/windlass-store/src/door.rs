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
                jobs::submit(self, job).await
            }

            async fn job(&self, id: JobId) -> Result<Option<Job>> {
                queries::job(self, id).await
            }

            async fn status(&self, id: JobId) -> Result<Option<JobStatus>> {
                queries::status(self, id).await
            }

            async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>> {
                queries::jobs(self, filter).await
            }

            async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>> {
                queries::owners(self, jobs).await
            }

            async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>> {
                queries::open_jobs(self, submitted_by, limit).await
            }

            async fn stats(&self) -> Result<Stats> {
                queries::stats(self).await
            }

            async fn snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>> {
                queries::snapshot(self, id).await
            }

            async fn chunks(
                &self,
                job: JobId,
                status: Option<ChunkStatus>,
                after: Option<i64>,
                limit: u32,
            ) -> Result<Vec<ChunkRow>> {
                queries::chunks(self, job, status, after, limit).await
            }

            async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>> {
                queries::segments(self, job).await
            }

            async fn hours(
                &self,
                age: Duration,
                submitted_by: Option<&str>,
                job_types: Option<&[String]>,
            ) -> Result<Vec<HourlyJobs>> {
                summaries::hours(self, age, submitted_by, job_types).await
            }

            async fn cells(&self, job: JobId, width: i64) -> Result<Vec<ChunkBucket>> {
                summaries::cells(self, job, width).await
            }

            async fn pace(&self, job: JobId, stretch: Duration) -> Result<Vec<ThroughputBucket>> {
                summaries::pace(self, job, stretch).await
            }

            async fn durations(&self, job: JobId) -> Result<Vec<DurationBucket>> {
                summaries::durations(self, job).await
            }

            async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>> {
                summaries::slowest(self, job, limit).await
            }

            async fn letter_groups(
                &self,
                filter: &DeadLetterFilter,
            ) -> Result<Vec<DeadLetterGroup>> {
                dead_letters::groups(self, filter).await
            }

            async fn claim_segments(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedSegment>> {
                segments::claim(self, by, limit).await
            }

            async fn load(&self, page: Page) -> Result<Kept> {
                segments::load(self, page).await
            }

            async fn release_segment(
                &self,
                lease: SegmentLease,
                error: Option<&str>,
                attempt: bool,
                wait: Duration,
            ) -> Result<Kept> {
                segments::release(self, lease, error, attempt, wait).await
            }

            async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<Kept> {
                segments::fail(self, lease, error).await
            }

            async fn claim_chunks(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedChunk>> {
                chunks::claim(self, by, limit).await
            }

            async fn confirm(&self, leases: &[Lease]) -> Result<Vec<Standing>> {
                leases::confirm(self, leases).await
            }

            async fn heartbeat(
                &self,
                chunks: &[LeaseRenewal],
                segments: &[SegmentLease],
            ) -> Result<Vec<Standing>> {
                leases::heartbeat(self, chunks, segments).await
            }

            async fn add_letters(&self, lease: Lease, letters: &[NewDeadLetter]) -> Result<Kept> {
                dead_letters::add(self, lease, letters).await
            }

            async fn complete(
                &self,
                lease: Lease,
                progress: &Progress,
                settled: &[String],
            ) -> Result<Kept> {
                let ending = Ending::Completed { settled: settled.to_vec(), part: None };
                chunks::end(self, lease, progress, ending).await
            }

            async fn complete_part(
                &self,
                lease: Lease,
                progress: &Progress,
                part: &NewPart,
            ) -> Result<Kept> {
                let ending = Ending::Completed { settled: Vec::new(), part: Some(part.clone()) };
                chunks::end(self, lease, progress, ending).await
            }

            async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>> {
                parts::list(self, job, after, limit).await
            }

            async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<Kept> {
                parts::put_merged(self, lease, merged).await
            }

            async fn redrive_chain(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
                parts::redrive_chain(self, root).await
            }

            async fn remove_parts(&self, job: JobId) -> Result<()> {
                parts::remove(self, job).await
            }

            async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<bool> {
                chunks::complete_together(self, chunks).await
            }

            async fn release(
                &self,
                lease: Lease,
                progress: &Progress,
                error: Option<&str>,
                attempt: bool,
                wait: Duration,
            ) -> Result<Kept> {
                chunks::release(self, lease, progress, error, attempt, wait).await
            }

            async fn fail(
                &self,
                lease: Lease,
                progress: &Progress,
                error: &str,
                fail_job: bool,
                settled: &[String],
            ) -> Result<Kept> {
                chunks::end(self, lease, progress, Ending::failed(error, fail_job, settled)).await
            }

            async fn rescue(&self) -> Result<u64> {
                leases::rescue(self).await
            }

            async fn pause(&self, job: JobId, reason: Option<&str>) -> Result<JobStatus> {
                lifecycle::steer(
                    self,
                    job,
                    Steering::Pause { reason: reason.map(crate::values::clean) },
                )
                .await
            }

            async fn resume(&self, job: JobId) -> Result<JobStatus> {
                lifecycle::steer(self, job, Steering::Resume).await
            }

            async fn cancel(&self, job: JobId) -> Result<JobStatus> {
                lifecycle::steer(self, job, Steering::Cancel).await
            }

            async fn retry(&self, job: JobId) -> Result<JobStatus> {
                lifecycle::steer(self, job, Steering::Retry).await
            }

            async fn claim_cancelled(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<ClaimedChunk>> {
                lifecycle::claim_cancelled(self, by, limit).await
            }

            async fn end_cancelled(
                &self,
                lease: Lease,
                progress: &Progress,
                settled: &[String],
            ) -> Result<Kept> {
                let ending = Ending::Cancelled { settled: settled.to_vec() };
                chunks::end(self, lease, progress, ending).await
            }

            async fn claim_cancelled_merges(
                &self,
                by: &Capabilities,
                limit: u32,
            ) -> Result<Vec<SegmentLease>> {
                lifecycle::claim_cancelled_merges(self, by, limit).await
            }

            async fn end_cancelled_merge(
                &self,
                lease: SegmentLease,
                note: Option<&str>,
            ) -> Result<Kept> {
                segments::cancel(self, lease, note.map(crate::values::clean)).await
            }

            async fn discardable(
                &self,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<(JobId, String)>> {
                lifecycle::discardable(self, connections, limit).await
            }

            async fn discarded(&self, job: JobId) -> Result<()> {
                lifecycle::discarded(self, job).await
            }

            async fn hold(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool> {
                controls::hold(self, subject, &crate::values::clean(reason), wait).await
            }

            async fn stop(&self, subject: &str, stopped: bool) -> Result<()> {
                controls::stop(self, subject, stopped).await
            }

            async fn set_throughput(
                &self,
                subject: &str,
                concurrency: Option<i64>,
                rate: Option<i64>,
            ) -> Result<()> {
                controls::set_throughput(self, subject, concurrency, rate).await
            }

            async fn controls(&self) -> Result<Vec<Control>> {
                controls::controls(self).await
            }

            async fn over_limit(&self) -> Result<Vec<Lease>> {
                controls::over_limit(self).await
            }

            async fn reserve(&self, job: JobId, items: i64, most: Duration) -> Result<Duration> {
                controls::reserve(self, job, items, most).await
            }

            async fn heartbeat_worker(&self, by: &Capabilities, slots: i64) -> Result<()> {
                controls::heartbeat_worker(self, by, slots).await
            }

            async fn remove_worker(&self, name: &str) -> Result<()> {
                controls::remove_worker(self, name).await
            }

            async fn workers(&self) -> Result<Vec<WorkerRow>> {
                controls::workers(self).await
            }

            async fn now(&self) -> Result<DateTime<Utc>> {
                schedules::now(self).await
            }

            async fn put_schedule(
                &self,
                job_type: &str,
                spec: &str,
                next_at: Option<DateTime<Utc>>,
            ) -> Result<()> {
                schedules::put(self, job_type, spec, next_at).await
            }

            async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
                schedules::list(self).await
            }

            async fn fired(
                &self,
                job_type: &str,
                from: DateTime<Utc>,
                to: Option<DateTime<Utc>>,
                fired: Option<(DateTime<Utc>, JobId)>,
            ) -> Result<bool> {
                schedules::fired(self, job_type, from, to, fired).await
            }

            async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()> {
                schedules::fail(self, job_type, &crate::values::clean(error)).await
            }

            async fn pause_schedule(
                &self,
                job_type: &str,
                paused: bool,
                next_at: Option<DateTime<Utc>>,
            ) -> Result<bool> {
                schedules::pause(self, job_type, paused, next_at).await
            }

            async fn graph(&self, job: JobId, limit: u32) -> Result<Vec<Linked>> {
                dependencies::graph(self, job, limit).await
            }

            async fn join_points(&self, limit: u32) -> Result<Vec<JoinPointRow>> {
                dependencies::join_points(self, limit).await
            }

            async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>> {
                dependencies::triggers(self, limit).await
            }

            async fn claim_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>> {
                dependencies::claim_triggers(self, limit, lease).await
            }

            async fn triggered(&self, id: JobId) -> Result<()> {
                dependencies::triggered(self, id).await
            }

            async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()> {
                dependencies::fail_trigger(self, id, error, wait).await
            }

            async fn letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>> {
                dead_letters::list(self, filter).await
            }

            async fn redrivable(&self, filter: &DeadLetterFilter) -> Result<Vec<RedriveRoot>> {
                dead_letters::redrivable(self, filter).await
            }

            async fn redrive(
                &self,
                original: JobId,
                filter: &DeadLetterFilter,
                job: NewJob,
            ) -> Result<Option<(JobId, u64)>> {
                dead_letters::redrive(self, original, filter, job).await
            }

            async fn mark_letters(
                &self,
                filter: &DeadLetterFilter,
                to: DeadLetterStatus,
            ) -> Result<u64> {
                dead_letters::mark(self, filter, to).await
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

            async fn unclaimable(&self) -> Result<Vec<Unclaimable>> {
                alerts::unclaimable(self).await
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
                retention::job_types(self).await
            }

            async fn prunable(
                &self,
                job_type: &str,
                age: Duration,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<JobId>> {
                retention::jobs(self, sql!("prunable"), job_type, age, connections, limit).await
            }

            async fn remove_chunks(&self, job: JobId) -> Result<u64> {
                // Segments first: a job without them is known to be pruned.
                retention::remove_segments(self, job).await?;
                let removed = retention::remove_chunks(self, job).await?;
                parts::remove(self, job).await?;
                retention::close(self, job).await?;
                Ok(removed)
            }

            async fn expired(
                &self,
                job_type: &str,
                age: Duration,
                connections: &[String],
                limit: u32,
            ) -> Result<Vec<JobId>> {
                retention::jobs(self, sql!("expired"), job_type, age, connections, limit).await
            }

            async fn close(&self, job: JobId, age: Duration) -> Result<bool> {
                retention::expire(self, job, age).await
            }

            async fn remove(&self, job: JobId) -> Result<u64> {
                retention::remove_segments(self, job).await?;
                let removed = retention::remove_chunks(self, job).await?;
                retention::remove(self, job).await?;
                Ok(removed)
            }

            async fn remove_letters(&self, job_type: &str, age: Duration) -> Result<u64> {
                retention::remove_letters(self, job_type, age).await
            }

            async fn changed(&self, at_most: Duration) {
                listener::changed(self, at_most).await
            }
        }
    };
}

pub(crate) use door;
