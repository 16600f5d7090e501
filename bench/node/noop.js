// No-op jobs of graphile-worker. `queue COUNT` queues them. `work MODE` does all of them and prints
// when the first was claimed and the last was complete, in milliseconds of this machine's clock.

const { EventEmitter } = require("node:events");
const { Logger, makeWorkerUtils, runOnce } = require("graphile-worker");

const [url, what, how] = process.argv.slice(1);
const quiet = new Logger(() => () => {});
// What its own performance page and test use.
const shape = { connectionString: url, concurrentJobs: 24, maxPoolSize: 25, logger: quiet };
const batched = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

async function queue(count) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
  await utils.migrate();
  await utils.withPgClient((client) =>
    client.query(
      `SELECT FROM graphile_worker.add_jobs(ARRAY(
         SELECT json_populate_record(NULL::graphile_worker.job_spec,
           json_build_object('identifier', 'noop', 'payload', json_build_object('id', i)))
         FROM generate_series(1, $1::int) i))`,
      [count],
    ),
  );
  await utils.release();
}

async function work(mode) {
  const events = new EventEmitter();
  let begun;
  events.once("job:start", () => (begun = Date.now()));
  const worker = { ...shape, ...(mode === "batched" ? batched : {}) };
  await runOnce({ preset: { worker }, taskList: { noop: () => {} }, events, noHandleSignals: true });
  // One that came too late for any job has nothing to say.
  if (begun) console.log(begun, Date.now());
}

(what === "queue" ? queue(how) : work(how)).catch((error) => {
  console.error(error);
  process.exit(1);
});
