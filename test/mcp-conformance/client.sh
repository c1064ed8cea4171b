#!/bin/sh
# What the suite starts for each scenario of a client, dozens at once: hands the scenario to the process that has started the
# suite (asked-scenarios.ts), and ends as that says. A Node for each would keep two processors busy for half a minute.
asked=$ACP_MCP_CONFORMANCE_ASKED/$$
mkfifo "$asked.answer"
printf '%s\n%s\n%s\n' "$MCP_CONFORMANCE_SCENARIO" "$1" "${MCP_CONFORMANCE_CONTEXT:-{\}}" > "$asked.part"
mv "$asked.part" "$asked.scenario"
{ read -r code; cat; } < "$asked.answer" >&2 || code=1
exit "$code"
