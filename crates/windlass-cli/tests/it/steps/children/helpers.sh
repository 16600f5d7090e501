#!/bin/sh
# Says that every item is done. It has a helper running, as a program that starts others does, and
# the helper holds its standard output and error open. The argument is a key that makes it die.

sleep 3600 &
echo "$!" >> helpers
while IFS= read -r line; do
    if [ -n "$1" ] && printf '%s\n' "$line" | grep -q "\"key\": *$1[,}]"; then
        echo "account $1 is poison" >&2
        exit 3
    fi
    answer=$(printf '%s\n' "$line" | grep -o '"key": *[0-9]*' | sed 's/.*/{&}/' | paste -s -d , -)
    printf '{"results": [%s]}\n' "$answer"
done
echo "$$" >> ended
