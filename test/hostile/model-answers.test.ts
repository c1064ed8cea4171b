// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { createModelProviders } from '../../src/providers/models/index.ts';
import { modelCall, modes, weatherTool } from '../support/providers/model-calls.ts';
import { startRawServer } from '../support/providers/raw-server.ts';
import { type SurfaceCase, surfaceCases } from '../support/providers/surface-cases.ts';
import { type Answers, allExcesses } from './hostile-answers.ts';

interface Templates {
  /** Answers that come at once. */
  readonly complete: readonly string[];
  /** Events of a stream. */
  readonly event: readonly string[];
  /** An answer with the arguments of a tool as a text of JSON; null: this wire has them as JSON. */
  readonly args: string | null;
}

const chat: Templates = {
  complete: [
    '{"choices":"*"}',
    '{"choices":[{"message":{"content":"*"}}]}',
    '{"choices":[{"message":{"tool_calls":"*"}}]}',
  ],
  event: ['{"choices":"*"}', '{"choices":[{"delta":{"content":"*"}}]}', '{"choices":[{"delta":{"tool_calls":"*"}}]}'],
  args: '{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"1","type":"function","function":{"name":"weather_get","arguments":"*"}}]}}]}',
};

const templates: Readonly<Partial<Record<SurfaceCase['wire'], Templates>>> = {
  chat,
  azure: chat,
  responses: {
    complete: ['{"output":"*"}', '{"output":[{"type":"message","content":"*"}]}', '{"id":"1","output":[],"usage":"*"}'],
    event: [
      '{"type":"response.completed","response":{"output":"*"}}',
      '{"type":"response.output_text.delta","delta":"*"}',
    ],
    args: '{"id":"1","created_at":1,"model":"m","output":[{"type":"function_call","id":"f","call_id":"c","name":"weather_get","arguments":"*"}],"usage":{"input_tokens":1,"output_tokens":1}}',
  },
  anthropic: {
    complete: [
      '{"content":"*"}',
      '{"type":"message","content":[{"type":"tool_use","id":"1","name":"weather_get","input":"*"}]}',
    ],
    event: [
      '{"type":"message_start","message":{"content":"*"}}',
      '{"type":"content_block_delta","index":0,"delta":"*"}',
    ],
    args: null,
  },
  gemini: {
    complete: [
      '{"candidates":"*"}',
      '{"candidates":[{"content":{"parts":"*"}}]}',
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather_get","args":"*"}}]}}]}',
    ],
    event: ['{"candidates":"*"}', '{"candidates":[{"content":{"parts":"*"}}]}'],
    args: null,
  },
};

for (const surface of surfaceCases)
  test(`no answer of ${surface.provider} stops the event loop for long`, async () => {
    let write = (_response: ServerResponse): void => undefined;
    await using server = await startRawServer((response) => write(response));
    const providers = createModelProviders(surface.settings(server.url, null), { log: () => undefined });
    const provider = providers.get(surface.provider) ?? assert.fail('it is there');
    const answerWith =
      (status: number, type: string, begin = '', end = '') =>
      (document: Buffer): void => {
        write = (response) => {
          response.writeHead(status, { 'content-type': type });
          response.write(begin);
          response.write(document);
          response.end(end);
        };
      };
    const asJson = answerWith(200, 'application/json');
    const call = modelCall({ model: surface.model, tools: [weatherTool] });
    const answers: Answers[] = [];
    const add = (
      what: string,
      template: string,
      answer: (document: Buffer) => void,
      run: () => Promise<unknown>,
      more = {},
    ) =>
      answers.push({
        what: `${surface.provider}: ${what}`,
        template,
        async ask(document) {
          answer(document);
          await run();
        },
        ...more,
      });
    const own = templates[surface.wire] ?? assert.fail('the wire has its templates');
    for (const { name, run } of modes) {
      const ask = () => run(provider, call);
      add(`a refusal, ${name}`, '{"error":"*"}', answerWith(400, 'application/json'), ask);
      for (const one of name === 'streamed' ? own.complete : []) add('a document for a stream', one, asJson, ask);
      if (name === 'streamed')
        for (const one of own.event) add('an event', one, answerWith(200, 'text/event-stream', 'data: ', '\n\n'), ask);
      else for (const one of own.complete) add('an answer', one, asJson, ask);
      if (name !== 'streamed' && own.args !== null) add('arguments', own.args, asJson, ask, { isQuoted: true });
    }
    const { signal } = new AbortController();
    for (const member of ['data', 'models'])
      add('a list of models', `{"${member}":"*"}`, asJson, async () => provider.listModels?.(signal));
    const vectors = { dimensions: null, take: () => undefined };
    if (provider.makesVectors === true)
      for (const one of ['{"data":"*"}', '{"data":[{"index":0,"embedding":"*"}]}', '{"embeddings":[{"values":"*"}]}'])
        add('embeddings', one, asJson, () => provider.generate({ ...call, tools: [], vectors }));
    const found = await allExcesses(answers);
    await providers.close();
    assert.deepEqual(found, []);
  });
