// A handler in Node: writes every name in upper case.
//
// A line with a batch comes in, a line with its results goes out, until standard input ends.
// Standard output is for answers only. Print what people should see with console.error.

function handle({ key, record }) {
  const { name, town } = record;
  if (!name) {
    return { key, error: { message: "no name", retryable: false, context: { town } } };
  }
  if (name === name.toUpperCase()) {
    return { key, skip: true };
  }
  return { key, update: { name: name.toUpperCase() } };
}

// Cut at "\n" by hand: from Node 24 on, node:readline also cuts at U+2028 and U+2029, which may
// stand in a record.
async function* lines(input) {
  let rest = "";
  for await (const text of input.setEncoding("utf8")) {
    const parts = (rest + text).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}

for await (const line of lines(process.stdin)) {
  const { items } = JSON.parse(line);
  // A pipe is written at once: there is nothing to flush.
  process.stdout.write(JSON.stringify({ results: items.map(handle) }) + "\n");
}
