// Backfills `lineitem` with one job per row, on graphile-worker or pg-boss.
// `queue KIND ROWS` queues the jobs. `work KIND` does jobs until none is left. A worker that was killed leaves
// jobs behind that look as if they were running; `unlock` makes them available at once, as an operator would.

const RAISE =
  "UPDATE lineitem SET l_points = l_points + 1, version = version + 1 WHERE l_orderkey = $1 AND l_linenumber = $2";
const [url, what, kind, rows] = process.argv.slice(1);
// The same number of jobs at once in each process as in the benchmark `noop`.
const AT_ONCE = 24;

function graphile() {
  const { Logger, makeWorkerUtils, runOnce } = require("graphile-worker");
  const logger = new Logger(() => () => {});
  const raise = ({ order, line }, { withPgClient }) =>
    withPgClient((client) => client.query({ name: "raise", text: RAISE, values: [order, line] }));
  const sql = async (text, values) => {
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    await utils.migrate();
    await utils.withPgClient((client) => client.query(text, values));
    await utils.release();
  };
  return {
    queue: () =>
      sql(
        `SELECT FROM graphile_worker.add_jobs(ARRAY(
           SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object(
             'identifier', 'raise', 'payload', json_build_object('order', i / 4, 'line', i % 4 + 1)))
           FROM generate_series(0, $1::int - 1) i))`,
        [rows],
      ),
    unlock: () =>
      sql(
        `SELECT graphile_worker.force_unlock_workers(array_agg(DISTINCT locked_by))
         FROM graphile_worker.jobs WHERE locked_by IS NOT NULL`,
      ),
    // Its fastest mode: jobs are fetched and completed in batches.
    work: () =>
      runOnce({
        preset: {
          worker: {
            connectionString: url,
            logger,
            concurrentJobs: AT_ONCE,
            maxPoolSize: AT_ONCE + 1,
            localQueue: { size: 500 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: { raise },
        noHandleSignals: true,
      }),
  };
}

function pgboss() {
  const PgBoss = require("pg-boss");
  const { Pool } = require("pg");
  // The handlers of its `work()` wait for the polling interval between batches; `fetch()` does not.
  const BATCH = 100;
  const use = async (action) => {
    const boss = new PgBoss({ connectionString: url, max: 8, supervise: false, schedule: false });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    await action(boss);
    await boss.stop({ graceful: false });
  };
  return {
    queue: () =>
      use(async (boss) => {
        await boss.createQueue("raise", { name: "raise", retryLimit: 100 });
        const jobs = Array.from({ length: Number(rows) }, (_, i) => ({
          name: "raise",
          data: { order: Math.floor(i / 4), line: (i % 4) + 1 },
        }));
        while (jobs.length > 0) await boss.insert(jobs.splice(0, 10_000));
      }),
    unlock: async () => {
      const pool = new Pool({ connectionString: url });
      await pool.query("UPDATE pgboss.job SET state = 'retry', start_after = now() WHERE state = 'active'");
      await pool.end();
    },
    work: () =>
      use(async (boss) => {
        const pool = new Pool({ connectionString: url, max: AT_ONCE });
        const loop = async () => {
          let jobs;
          while ((jobs = await boss.fetch("raise", { batchSize: BATCH })).length > 0) {
            const left = [...jobs];
            const next = async () => {
              for (let job; (job = left.pop()); ) {
                await pool.query({ name: "raise", text: RAISE, values: [job.data.order, job.data.line] });
              }
            };
            await Promise.all(Array.from({ length: AT_ONCE / 4 }, next));
            await boss.complete("raise", jobs.map((job) => job.id));
          }
        };
        await Promise.all([loop(), loop(), loop(), loop()]);
        await pool.end();
      }),
  };
}

const queues = { graphile, pgboss };
queues[kind]()
  [what]()
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
