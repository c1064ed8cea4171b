import { parseArgs } from 'node:util';
import type { Scenario, SimulatedRequest } from './scenario.ts';
import { startProviderSimulator } from './simulator.ts';

/**
 * The simulator as a process of its own. Prints its URL on the first line and runs until SIGTERM or SIGINT.
 * `--chunks 20` text chunks, `--tool NAME` asks for that tool once before it answers, `--arguments JSON` of that
 * call, `--delay MS` before each frame, `--port N`.
 */
const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '20' },
    tool: { type: 'string' },
    arguments: { type: 'string', default: '{}' },
    delay: { type: 'string', default: '0' },
    port: { type: 'string', default: '0' },
  },
});

const chunks = Number(values.chunks);
const answer: Scenario = {
  answer: {
    text: Array.from({ length: chunks }, (_, index) => `word${index} `),
    usage: { input: 120, output: chunks * 2, cached: 64, reasoning: 0 },
  },
};
const toolName = values.tool;
const toolRound: Scenario | null =
  toolName === undefined
    ? null
    : {
        answer: {
          toolCalls: [{ id: 'call_simulated_1', name: toolName, arguments: values.arguments }],
          usage: { input: 90, output: 12 },
        },
      };

// Each API marks a tool's result in its own way; the last message tells whether one is there.
const toolResult = /"(?:role":"tool"|type":"tool_result"|type":"function_call_output"|functionResponse":)/;

const hasToolResult = (request: SimulatedRequest): boolean => {
  const messages = (request.body['messages'] ?? request.body['input'] ?? request.body['contents']) as unknown[];
  return toolResult.test(JSON.stringify(messages.at(-1) ?? ''));
};

const simulator = await startProviderSimulator({
  record: false,
  frameDelayMs: Number(values.delay),
  port: Number(values.port),
  respond: (request) => (toolRound === null || hasToolResult(request) ? answer : toolRound),
});

console.log(simulator.url);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void simulator.close());
