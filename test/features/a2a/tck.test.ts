import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import {
  cardOf,
  joined,
  message,
  next,
  openA2A,
  post,
  refusalOf,
  result,
  rpc,
  send,
  stream,
  streamed,
  type Wire,
  working,
} from './a2a-world.ts';

/*
 * Scenarios of the protocol's compatibility kit for JSON-RPC, by their names there. What they ask for beyond this service's
 * rules is named where it is left out.
 */

type Scenarios = Readonly<Record<string, (app: TestApp) => Promise<unknown>>>;

/** All scenarios of one file of the kit, each told by its name. */
const file = (name: string, scenarios: Scenarios): void =>
  overHttp(`A2A-13 A2A-14 A2A-33 kit ${name}: ${Object.keys(scenarios).join(', ')}`, async (open) => {
    const app = await openA2A(open);
    for (const [scenario, run] of Object.entries(scenarios))
      await run(app).catch((error: unknown) => {
        throw new Error(`${name} ${scenario}`, { cause: error });
      });
  });

const streaming = { headers: { accept: 'text/event-stream' } };
const codeOf = async (...call: Parameters<typeof refusalOf>): Promise<number> => (await refusalOf(...call))[0];

file('core_operations/test_requirements', {
  'CORE-SEND-001 SendMessage returns Task or Message': async (app) => assert.ok((await send(app, 'Hello from TCK')).id),
  'CORE-SEND-003 SendMessage returns ContentTypeNotSupportedError for unsupported media': async (app) => {
    const parts = [{ raw: 'dGNr', mediaType: 'application/x-unsupported-tck-type' }];
    // By itself such a part is no message here.
    const said = { message: message('', { parts: [{ text: 'a' }, ...parts] }) };
    assert.equal(await codeOf(app, 'SendMessage', said), -32005);
  },
  'CORE-STREAM-001 CORE-STREAM-003 a stream begins with the Task and closes at a terminal state': async (app) => {
    const events = await streamed(app, 'SendStreamingMessage', { message: message('Stream task lifecycle') });
    assert.ok(events[0].task !== undefined);
    assert.equal(events.at(-1).statusUpdate.status.state, 'TASK_STATE_COMPLETED');
  },
  'CORE-GET-002 CORE-CANCEL-003 STREAM-SUB-004 TaskNotFoundError for an invalid task ID': async (app) => {
    const params = { id: 'tck-nonexistent' };
    assert.equal(await codeOf(app, 'GetTask', params), -32001);
    assert.equal(await codeOf(app, 'CancelTask', params), -32001);
    assert.equal(await codeOf(app, 'SubscribeToTask', params, streaming), -32001);
  },
  'CORE-LIST-001 CORE-LIST-002 CORE-LIST-003 CORE-LIST-004 CORE-LIST-005 ListTasks': async (app) => {
    const contextId = 'tck-test-context';
    for (const said of ['One', 'Two', 'Three']) await send(app, said, { contextId });
    const page = await result(app, 'ListTasks', { contextId, pageSize: 2 });
    const rest = await result(app, 'ListTasks', { contextId, pageSize: 2, pageToken: page.nextPageToken });
    const tasks = [...page.tasks, ...rest.tasks];
    assert.deepEqual([tasks.length, rest.nextPageToken], [3, '']);
    const times = tasks.map(({ status }: Wire) => status.timestamp);
    assert.deepEqual(times, [...times].sort().reverse());
    assert.ok(tasks.every((task: Wire) => !('artifacts' in task)));
  },
  'CORE-EXECUTION-MODE-001 blocking mode waits for a terminal state': async (app) =>
    assert.equal((await send(app, 'Blocking request')).status.state, 'TASK_STATE_COMPLETED'),
  'CORE-EXECUTION-MODE-002 non-blocking mode returns immediately': async (app) =>
    assert.equal((await working(app)).status.state, 'TASK_STATE_WORKING'),
  'CORE-MULTI-001 CORE-MULTI-001a a generated contextId is in the response': async (app) =>
    assert.ok((await send(app, 'Message without contextId')).contextId !== ''),
  'CORE-MULTI-002 a contextId of the client is kept': async (app) =>
    assert.equal((await send(app, 'Hi', { contextId: 'tck-client-context-001' })).contextId, 'tck-client-context-001'),
  'CORE-MULTI-003 unique taskId for new tasks': async (app) =>
    assert.notEqual((await send(app, 'New task request')).id, (await send(app, 'New task request')).id),
  'CORE-MULTI-004 TaskNotFoundError for an invalid taskId in a message': async (app) =>
    assert.equal(await codeOf(app, 'SendMessage', { message: message('Hi', { taskId: 'tck-nonexistent' }) }), -32001),
});

file('core_operations/test_error_handling', {
  test_error_has_code_and_message_jsonrpc: async (app) => {
    const { error } = (await rpc(app, 'NonExistentMethod', {})).body;
    assert.deepEqual([typeof error.code, typeof error.message], ['number', 'string']);
  },
  test_malformed_request_rejected_jsonrpc: async (app) => assert.equal(await codeOf(app, 'SendMessage', {}), -32602),
  test_push_not_supported_jsonrpc: async (app) =>
    assert.equal(
      await codeOf(app, 'CreateTaskPushNotificationConfig', { taskId: 't', url: 'https://example.com' }),
      -32003,
    ),
  // The kit takes any error here; this service answers with that for a card that is not configured (A2A-14).
  test_extended_card_not_supported_jsonrpc: async (app) =>
    assert.equal(await codeOf(app, 'GetExtendedAgentCard', {}), -32007),
  'VER-SERVER-002 an unsupported version is VersionNotSupportedError': async (app) =>
    assert.equal(
      await codeOf(app, 'SendMessage', { message: message('Hi') }, { headers: { 'a2a-version': '99.0' } }),
      -32009,
    ),
});

file('core_operations/test_task_lifecycle', {
  test_get_task_returns_current_state: async (app) => {
    const task = await send(app, 'Complete');
    assert.equal((await result(app, 'GetTask', { id: task.id })).id, task.id);
  },
  test_cancel_task_returns_updated_state: async (app) => {
    const task = await working(app);
    assert.equal((await result(app, 'CancelTask', { id: task.id })).status.state, 'TASK_STATE_CANCELED');
  },
  test_cancel_terminal_task_returns_error: async (app) =>
    assert.equal(await codeOf(app, 'CancelTask', { id: (await send(app, 'Hi')).id }), -32002),
  test_send_message_to_terminal_task: async (app) => {
    const { id: taskId } = await send(app, 'Hi');
    assert.equal(await codeOf(app, 'SendMessage', { message: message('Follow-up', { taskId }) }), -32004);
  },
  test_reject_mismatching_context: async (app) => {
    const { id: taskId } = await send(app, 'Hi');
    const said = message('Mismatched', { taskId, contextId: 'tck-wrong-context' });
    assert.equal(await codeOf(app, 'SendMessage', { message: said }), -32004);
  },
  // Left out: test_infer_context_from_task sends a second message to a task in progress, which takes none here (A2A-20).
  test_subscribe_terminates_at_terminal_state: async (app) => {
    const task = await working(app);
    const subscribed = await stream(app, 'SubscribeToTask', { id: task.id });
    await next(subscribed);
    await result(app, 'CancelTask', { id: task.id });
    let last: Wire;
    for await (const event of subscribed.events) last = event;
    assert.equal(last.statusUpdate.status.state, 'TASK_STATE_CANCELED');
  },
  test_subscribe_to_terminal_task_returns_error: async (app) =>
    assert.equal(await codeOf(app, 'SubscribeToTask', { id: (await send(app, 'Hi')).id }, streaming), -32004),
});

file('core_operations/test_task_history, test_multi_stream', {
  'CORE-HIST-001 CORE-HIST-002 CORE-HIST-005 CORE-HIST-006 historyLength': async (app) => {
    const { id } = await send(app, 'What was said');
    const history = async (historyLength?: number) => (await result(app, 'GetTask', { id, historyLength })).history;
    assert.deepEqual([await history(0), (await history(1)).length], [undefined, 1]);
    const told = await history();
    assert.deepEqual(
      told.map(({ role }: Wire) => role),
      ['ROLE_USER', 'ROLE_AGENT'],
    );
    assert.deepEqual(told[0].parts, [{ text: 'What was said' }]);
  },
  'CORE-HIST-003 historyLength=0 on SendMessage omits history from the response': async (app) => {
    const params = { message: message('Hi'), configuration: { historyLength: 0 } };
    assert.equal((await result(app, 'SendMessage', params)).task.history, undefined);
  },
  'STREAM-ORDER-001 STREAM-ORDER-002 STREAM-ORDER-003 STREAM-ORDER-004 several streams of one task': async (app) => {
    const task = await working(app);
    const opened = [0, 1, 2].map(() => stream(app, 'SubscribeToTask', { id: task.id }));
    const [one, two, three] = await Promise.all(opened);
    for (const each of [one, two, three]) if (each !== undefined) await next(each);
    one?.close();
    await result(app, 'CancelTask', { id: task.id });
    const rest = async (each: typeof two) => {
      const events: Wire[] = [];
      for await (const event of each?.events ?? []) events.push(event);
      return events.filter(({ statusUpdate }) => statusUpdate !== undefined);
    };
    assert.deepEqual(await rest(two), await rest(three));
  },
});

file('jsonrpc/test_error_codes, jsonrpc/test_sse_streaming', {
  test_error_code_in_valid_range: async (app) => {
    for (const method of ['GetTask', 'CancelTask']) {
      const code = await codeOf(app, method, { id: 'range-check' });
      assert.ok(code <= -32001 && code >= -32099);
    }
  },
  // The kit skips what HTTP refuses by itself, as it is here (A2A-13).
  test_content_type_not_supported_error: async (app) =>
    assert.equal((await post(app, '{}', { headers: { 'content-type': 'text/plain' } })).status, 415),
  'test_streaming_events_have_jsonrpc_envelope, test_streaming_events_contain_stream_response': async (app) => {
    // Envelopes are checked by the reader of streams itself.
    const events = await streamed(app, 'SendStreamingMessage', { message: message('TCK streaming test') });
    for (const event of events)
      assert.ok(['task', 'statusUpdate', 'artifactUpdate'].includes(Object.keys(event).join()));
    assert.equal(joined(events), 'Hello from the helper.');
  },
  test_subscribe_first_event_is_task: async (app) => {
    const subscribed = await stream(app, 'SubscribeToTask', { id: (await working(app)).id });
    assert.ok((await next(subscribed)).task !== undefined);
    subscribed.close();
  },
});

file('agent_card/test_agent_card_caching, requirements/agent_card', {
  'CARD-DISC-001 CARD-STRUCT-001 CARD-PROTO-001 CARD-PROTO-002 what a card has': async (app) => {
    const { body } = await cardOf(app);
    for (const member of ['name', 'description', 'supportedInterfaces', 'capabilities', 'skills', 'version'])
      assert.ok(member in body, member);
    for (const { url, protocolBinding } of body.supportedInterfaces)
      assert.deepEqual([new URL(url).origin, protocolBinding], [app.url, 'JSONRPC']);
  },
  'CARD-CACHE-001 CARD-CACHE-002 Cache-Control and ETag': async (app) => {
    const { headers } = await cardOf(app);
    assert.match(headers.get('cache-control') ?? '', /max-age=\d+/);
    assert.ok(headers.get('etag'));
  },
});

file('jsonrpc/test_json_rpc_compliance, jsonrpc/test_protocol_violations (0.3)', {
  test_rejects_malformed_json: async (app) =>
    assert.equal((await post(app, '{"jsonrpc": "2.0",')).body.error.code, -32700),
  test_rejects_invalid_json_rpc_requests: async (app) => {
    for (const bad of [
      {},
      { jsonrpc: '2.0' },
      { method: 'message/send', id: 1 },
      { jsonrpc: '3.0', method: 'x', id: 1 },
    ])
      assert.equal((await post(app, JSON.stringify(bad))).body.error.code, -32600);
  },
  test_rejects_unknown_method: async (app) =>
    assert.equal(
      (await rpc(app, 'nonexistent/method', {}, { headers: { 'a2a-version': '0.3' } })).body.error.code,
      -32601,
    ),
  test_rejects_invalid_params: async (app) =>
    assert.equal((await rpc(app, 'message/send', {}, { headers: { 'a2a-version': '0.3' } })).body.error.code, -32602),
  test_duplicate_request_ids: async (app) => {
    const [one, two] = [await send(app, 'One'), await send(app, 'Two')];
    assert.notEqual(one.id, two.id);
  },
});
