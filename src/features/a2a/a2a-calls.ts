import type { TSchema } from 'typebox';
import type { RpcRequest } from '../../contract/json-rpc.ts';
import { type Checker, compileChecker } from '../../core/validate.ts';
import {
  GetTaskRequest,
  ListTasksRequest,
  type ProtocolVersion,
  SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskIdRequest,
} from './a2a.schema.ts';
import { A2AError } from './a2a-errors.ts';
import { type A2AMethod, methodOf, resumeExtension } from './a2a-versions.ts';
import { legacyEvent, legacyTask } from './legacy-answers.rules.ts';
import { fromLegacySend } from './legacy-requests.rules.ts';
import { assertOutputModes, requiredExtensions } from './message-content.ts';
import type { TaskCall, TaskMethods, TaskStream } from './task-methods.ts';

/** What a request is answered with: a result, or a stream of events. */
export type A2AResult = { readonly result: unknown } | { readonly stream: TaskStream };

/** A call of a method, and in which words it is answered. */
export interface VersionedCall extends TaskCall {
  readonly version: ProtocolVersion;
  readonly outputModes: readonly string[];
}

const streams: ReadonlySet<A2AMethod> = new Set<A2AMethod>(['SendStreamingMessage', 'SubscribeToTask']);

export const isStreaming = (method: A2AMethod): boolean => streams.has(method);

/** Parameters of a schema. Throws -32602 with the first members that are wrong. */
const checkedBy = <T>(schema: TSchema) => {
  let checker: Checker | null = null;
  return (params: unknown): T => {
    checker ??= compileChecker(schema, { nullIsAbsent: true });
    const value = checker.normalize(params);
    if (checker.check(value)) return value as T;
    const [first] = checker.errors(value);
    const field = first?.path ?? '';
    throw new A2AError('InvalidParams', `${field === '' ? 'params' : `params.${field}`} ${first?.message}.`, {
      metadata: { field },
    });
  };
};

const checked = {
  sendMessage: checkedBy<SendMessageRequest>(SendMessageRequest),
  getTask: checkedBy<GetTaskRequest>(GetTaskRequest),
  listTasks: checkedBy<ListTasksRequest>(ListTasksRequest),
  taskId: checkedBy<TaskIdRequest>(TaskIdRequest),
};

const assertExtensions = (uris: readonly string[]): void => {
  const unknown = uris.find((uri) => uri !== resumeExtension);
  if (unknown === undefined) return;
  throw new A2AError('ExtensionRequired', 'The request needs an extension that is not supported.', {
    metadata: { uri: unknown.slice(0, 256) },
  });
};

/** Answers requests, in either version: 0.3 is turned into 1.0 on the way in, and back on the way out. */
export const createA2ACalls = (methods: TaskMethods) => {
  const sendRequest = (call: VersionedCall, { params }: RpcRequest): SendMessageRequest => {
    const request = checked.sendMessage(call.version === '0.3' ? fromLegacySend(params) : params);
    assertExtensions(requiredExtensions(request));
    const { acceptedOutputModes, taskPushNotificationConfig: push } = request.configuration ?? {};
    if (push !== undefined && push !== null)
      throw new A2AError('PushNotSupported', 'Push notifications are not supported.');
    assertOutputModes(acceptedOutputModes, call.outputModes);
    return request;
  };

  const taskResult = (call: VersionedCall, task: Task): A2AResult => ({
    result: call.version === '0.3' ? legacyTask(task) : task,
  });

  return {
    /** Throws -32601 for a method that the version does not have. */
    method(version: ProtocolVersion, name: string): A2AMethod {
      const method = methodOf(version, name);
      if (method !== undefined) return method;
      throw new A2AError('MethodNotFound', `Version ${version} has no method "${name.slice(0, 64)}".`);
    },
    async answer(method: A2AMethod, call: VersionedCall, request: RpcRequest): Promise<A2AResult> {
      switch (method) {
        case 'SendMessage': {
          const task = await methods.sendMessage(call, sendRequest(call, request));
          return call.version === '0.3' ? taskResult(call, task) : { result: { task } };
        }
        case 'SendStreamingMessage':
          return { stream: await methods.sendStreamingMessage(call, sendRequest(call, request)) };
        case 'GetTask':
          return taskResult(call, await methods.getTask(call, checked.getTask(request.params)));
        case 'ListTasks':
          return { result: await methods.listTasks(call, checked.listTasks(request.params)) };
        case 'CancelTask':
          return taskResult(call, await methods.cancelTask(call, checked.taskId(request.params)));
        case 'SubscribeToTask':
          return { stream: await methods.subscribeToTask(call, checked.taskId(request.params)) };
        case 'PushNotificationConfig':
          throw new A2AError('PushNotSupported', 'Push notifications are not supported.');
        case 'GetExtendedAgentCard':
          throw new A2AError('ExtendedCardNotConfigured', 'There is no extended card.');
      }
    },
    event: (version: ProtocolVersion, event: StreamResponse): object =>
      version === '0.3' ? legacyEvent(event) : event,
    assertExtensions,
  };
};

export type A2ACalls = ReturnType<typeof createA2ACalls>;
