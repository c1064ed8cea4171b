import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompactionPlan } from '../../../../src/engine/compiled-agent.ts';
import {
  type ChatMessage,
  type ContentPart,
  type KeptSummary,
  newMessage,
  openConversation,
  toPrompt,
} from '../../../../src/engine/context/index.ts';
import type { ModelProvider } from '../../../../src/providers/models/index.ts';
import { isBlankText } from '../../../../src/providers/models/sendable-prompt.ts';
import { modelCall } from '../../../support/providers/model-calls.ts';
import { type Bench, openSurface, type SurfaceCase, surfaceCases } from '../../../support/providers/surface-cases.ts';

/** The same numbers in each run (a linear congruence). */
const randomOf = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

type Random = ReturnType<typeof randomOf>;

const texts = ['', ' ', '\n\n', '\u00a0', '\u200b\ufeff', 'A word. ', 'word '.repeat(40), 'x '.repeat(400)];
const ids = ['call_0', 'call_1', 'functions.look:0'];

const textPart = (random: Random): ContentPart => ({ type: 'Text', text: texts[random(texts.length)] ?? '' });

const message = (role: ChatMessage['role'], contents: readonly ContentPart[], nth: number): ChatMessage =>
  newMessage('run', `m-${nth}`, role, 0, contents);

const result = (random: Random, call: ContentPart): ContentPart[] => {
  // A call that was cancelled has none.
  if (call.type !== 'ToolCall' || random(8) === 0) return [];
  const text = texts[random(texts.length)] ?? '';
  const { toolCallId, toolName } = call;
  const isError = random(5) === 0;
  return [
    { type: 'ToolResult', toolCallId, toolName, result: isError ? null : text, errorMessage: isError ? text : null },
  ];
};

/** What a model said: a text, or calls with what their tools said, some of them under the same ids as earlier ones. */
const answer = (random: Random, next: () => number, mayCall: boolean): ChatMessage[] => {
  const calls: ContentPart[] = Array.from({ length: mayCall ? random(3) : 0 }, (_, index) => ({
    type: 'ToolCall',
    toolCallId: `${ids[(index + random(2)) % ids.length]}-${index}`,
    toolName: 'look',
    arguments: {},
  }));
  const said = message('Assistant', random(2) === 0 ? [textPart(random), ...calls] : calls, next());
  const results = calls.flatMap((call) => result(random, call));
  return results.length === 0 ? [said] : [said, message('Tool', results, next())];
};

const plan = (strategy: CompactionPlan['strategy'], random: Random): CompactionPlan =>
  ({
    strategy,
    triggerTokens: strategy === 'ContextWindow' ? null : [100, 500, 2000][random(3)],
    triggerMessages: strategy !== 'ContextWindow' && random(2) === 0 ? 3 + random(6) : null,
    triggerTurns: strategy !== 'ContextWindow' && random(2) === 0 ? 1 + random(3) : null,
    minimumPreservedTurns: 1 + random(3),
    minimumPreservedGroups: 1 + random(4),
    maxPromptTokens: strategy === 'ContextWindow' ? [150, 600, 2000][random(3)] : null,
    summarizationPrompt: null,
    summaryModel: { provider: { name: 'none' } },
  }) as unknown as CompactionPlan;

const strategies = [
  null,
  'SlidingWindow',
  'Truncation',
  'ToolResult',
  'Summarization',
  'ContextWindow',
  'Pipeline',
] as const;

interface Sent {
  readonly seed: number;
  readonly strategy: string | null;
  readonly messages: readonly ChatMessage[];
}

/** Conversations of some turns, as they are before each model call of each turn. */
const conversationsOf = async (seed: number, strategy: (typeof strategies)[number]): Promise<Sent[]> => {
  const random = randomOf(seed);
  const sent: Sent[] = [];
  let count = 0;
  const next = (): number => {
    count += 1;
    return count;
  };
  const compaction = strategy === null ? null : plan(strategy, random);
  // A caller may bring a conversation that the assistant has begun, or one with two messages of a kind in a row.
  let history: ChatMessage[] = random(3) === 0 ? answer(random, next, false) : [];
  let summary: KeptSummary | null = null;
  for (let turn = 0; turn < 3; turn += 1) {
    const messages = [message('User', [textPart(random)], next())];
    const run: Parameters<typeof openConversation>[0] = {
      id: 'run',
      plan: { tenantId: 't', requestId: 'r', replay: null, agent: { compaction, modelTools: [] } },
      callRecord: null,
      signal: new AbortController().signal,
      session: { summary },
      history,
      messages,
      summary,
      log: { append: () => undefined },
      trace: null,
    };
    const ports = { log: { warn: () => undefined }, now: () => 0, newId: () => `s-${next()}` };
    const summarize = async (): Promise<string> => {
      if (random(4) === 0) throw new Error('No summary.');
      return 'They talked.';
    };
    const conversation = openConversation(run, ports, summarize, null);
    const rounds = 1 + random(4);
    for (let round = 0; round < rounds; round += 1) {
      sent.push({ seed, strategy, messages: await conversation.toSend() });
      messages.push(...answer(random, next, round + 1 < rounds));
    }
    history = [...history, ...messages];
    summary = run.summary;
  }
  return sent;
};

/** No text of a request is blank, wherever its format has it. */
const blankTexts = (value: unknown): string[] => {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    (name === 'text' || name === 'content' || name === 'output') && typeof member === 'string' && isBlankText(member)
      ? [`${name}: ${JSON.stringify(member)}`]
      : blankTexts(member),
  );
};

const send = async (bench: Bench, surface: SurfaceCase, { seed, strategy, messages }: Sent): Promise<void> => {
  const prompt = toPrompt(seed % 2 === 0 ? null : ' \n', messages);
  const call = modelCall({ model: surface.model, prompt });
  await bench
    .provider(surface.provider)
    .generate(call)
    .catch((error: unknown) => {
      const [why] = bench.simulator.objections;
      throw new Error(`seed ${seed}, ${strategy}: ${why}\n${JSON.stringify(prompt, null, 1)}`, { cause: error });
    });
  const { body } = bench.simulator.lastRequest();
  const list = (body['messages'] ?? body['contents'] ?? body['input']) as { content?: unknown; tool_calls?: unknown }[];
  // An answer of chat completions that only calls tools has a text all the same, which is empty.
  const texts = list.filter(({ tool_calls: calls }) => calls === undefined);
  assert.deepEqual(blankTexts(texts), [], `seed ${seed}, ${strategy}`);
};

/** The others take nearly everything. */
const isStrict = ({ kind }: Pick<ModelProvider, 'kind'>): boolean => kind === 'anthropic' || kind === 'google';

for (const surface of surfaceCases)
  test(`AGENT-31 AGENT-37 whatever is compacted, ${surface.provider} is sent a conversation that it takes`, async () => {
    await using bench = await openSurface(surface);
    let count = 0;
    const seeds = isStrict(bench.provider(surface.provider)) ? 6 : 2;
    for (const strategy of strategies)
      for (let seed = 1; seed <= seeds; seed += 1)
        for (const sent of await conversationsOf(seed, strategy)) {
          await send(bench, surface, sent);
          count += 1;
        }
    assert.ok(count > 20 * seeds, `${count}`);
  });

test('AGENT-37 Truncation never begins a conversation with an answer, and no strategy makes it so', async () => {
  for (const strategy of strategies)
    for (let seed = 1; seed <= 200; seed += 1) {
      const all = await conversationsOf(seed, strategy);
      const [begun] = all;
      if (begun?.messages[0]?.role !== 'User') continue;
      for (const { messages } of all) assert.equal(messages[0]?.role, 'User', `seed ${seed}, ${strategy}`);
    }
});
