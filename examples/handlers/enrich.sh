#!/bin/sh
# A handler in shell, with jq: writes every name in upper case.
#
# A line with a batch comes in, a line with its results goes out, until standard input ends.
# --unbuffered sends each line at once: Windlass waits for it. jq raises the letters a to z only.

exec jq --unbuffered --compact-output '
  {results: [
    .items[] | {key} + (
      .record as {$name, $town}
      | if ($name // "") == "" then
          {error: {message: "no name", retryable: false, context: {$town}}}
        elif $name == ($name | ascii_upcase) then
          {skip: true}
        else
          {update: {name: ($name | ascii_upcase)}}
        end
    )
  ]}'
