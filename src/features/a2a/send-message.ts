import { AcpError } from '../../contract/errors.ts';
import { sessionIdPattern } from '../../contract/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { CallContext } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import { notAdmitted } from '../../engine/lifecycle/index.ts';
import type { ExposedRuns } from '../exposure/index.ts';
import { failureError } from '../runs/index.ts';
import type { SendMessageRequest } from './a2a.schema.ts';
import { A2AError } from './a2a-errors.ts';
import type { A2AMessageStore } from './a2a-messages.store.ts';
import { type MessageContent, messageContent, type SentFile } from './message-content.ts';

export interface SendMessageDeps {
  readonly store: A2AMessageStore;
  readonly runs: Pick<ExposedRuns, 'start' | 'abandon' | 'assertOwnSession'>;
  readonly runOf: (tenantId: string, runId: string) => Promise<RunRow | undefined>;
  readonly files: {
    /** Id of the file, kept for its session. Throws what the rules for uploads refuse. */
    keep(context: CallContext, sessionId: string, file: SentFile): Promise<string>;
    remove(context: CallContext, id: string): Promise<void>;
  };
  readonly allowedMediaTypes: readonly string[];
  /** Of what processes that share the store agree on. */
  readonly clock: Clock;
  readonly newId: () => string;
}

/** A call of an agent. */
export interface AgentCall {
  readonly context: CallContext;
  readonly agentName: string;
  /** The caller behind its door. */
  readonly door: string;
}

const keptMs = 86_400_000;
// Between the note of a message and the row of its run lies one write. A note that is older and has no run is of a process
// that has died there.
const openingMs = 30_000;
const lookEveryMs = 100;

const sessionForm = new RegExp(sessionIdPattern);

/** Another call with the same message has been faster. */
class MessageTaken extends Error {}

/** Messages of other agents, each of which makes one task, however often it is sent. */
export const createSendMessage = (deps: SendMessageDeps) => {
  const { store, runs, files, clock } = deps;
  const { now } = clock;
  /** Messages that are on their way here, by their id: the others with the same one wait for them. */
  const underway = new Map<string, Promise<void>>();

  /** The session of the message. Throws for one that somebody else has opened, or that is another agent's. */
  const contextOf = async ({ context, agentName }: AgentCall, asked: string | undefined): Promise<string> => {
    if (asked === undefined || asked === '') return deps.newId();
    if (!sessionForm.test(asked))
      throw new A2AError('InvalidParams', 'message.contextId is not an id of a context.', {
        reason: 'CONTEXT_INVALID',
      });
    await runs.assertOwnSession(context, asked, agentName);
    return asked;
  };

  const keepFiles = async (
    context: CallContext,
    sessionId: string,
    sent: MessageContent['files'],
  ): Promise<string[]> => {
    const kept: string[] = [];
    try {
      for (const file of sent) kept.push(await files.keep(context, sessionId, file));
      return kept;
    } catch (error) {
      await dropFiles(context, kept);
      throw error;
    }
  };

  /** Best effort: a file that nothing names goes with its session, or is swept. */
  const dropFiles = async (context: CallContext, ids: readonly string[]): Promise<void> => {
    for (const id of ids) await files.remove(context, id).catch(() => undefined);
  };

  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      clock.after(lookEveryMs, resolve);
    });

  /** The note of a message that was sent before, once its task is there or will not be; undefined: there is none. */
  const earlierTask = async (
    { context: { tenantId }, agentName, door }: AgentCall,
    messageId: string,
  ): Promise<{ readonly taskId: string; readonly isThere: boolean } | undefined> => {
    const key = { tenant_id: tenantId, agent_name: agentName, door, message_id: messageId };
    for (;;) {
      const row = await store.find(key, now());
      if (row === undefined) return undefined;
      const isThere = (await deps.runOf(tenantId, row.task_id)) !== undefined;
      if (isThere || now() - row.created_at >= openingMs) return { taskId: row.task_id, isThere };
      await pause();
    }
  };

  const start = async (
    call: AgentCall,
    request: SendMessageRequest,
    content: MessageContent,
    instead: string | null,
    isStreaming: boolean,
  ): Promise<string> => {
    const { context, agentName, door } = call;
    const { tenantId } = context;
    const { messageId } = request.message;
    const sessionId = await contextOf(call, request.message.contextId);
    const attachmentIds = await keepFiles(context, sessionId, content.files);
    const reserve = async (runId: string): Promise<void> => {
      const at = now();
      const note = { tenant_id: tenantId, agent_name: agentName, door, message_id: messageId, task_id: runId };
      if (!(await store.reserve({ ...note, created_at: at, kept_until: at + keptMs }, instead)))
        throw new MessageTaken();
    };
    try {
      const run = await runs.start(context, {
        agentName,
        body: {
          message: content.text,
          sessionId,
          ...(content.documents.length === 0 ? {} : { documents: content.documents }),
          ...(attachmentIds.length === 0 ? {} : { attachmentIds }),
          ...(content.parameters === null ? {} : { parameters: content.parameters }),
        },
        isStreaming,
        reserve,
      });
      // The row exists before anybody hears of the task.
      await run.log.opened;
      const { stopReason } = run;
      if (stopReason?.kind === 'fail' && stopReason.failure.type === notAdmitted)
        throw failureError(stopReason.failure, run.id);
      // Nobody could ever ask for a task that is not stored, and its caller is told that there is none: it gets no row later.
      if (run.log.storedNext === 0) {
        run.log.discardOpening();
        runs.abandon(context, run);
        throw new AcpError('store-unavailable', 'The store takes no writes now, and no task was made.');
      }
      return run.id;
    } catch (error) {
      await dropFiles(context, attachmentIds);
      throw error;
    }
  };

  /**
   * The id of a message's task: a new one, or what the same caller's message with this id has made within a day, whatever it says
   * now. Throws what the protocol calls it, or a refusal that HTTP has a status for; no task exists then.
   */
  const send = async (call: AgentCall, request: SendMessageRequest, isStreaming: boolean): Promise<string> => {
    const content = messageContent(request, deps.allowedMediaTypes);
    const { messageId } = request.message;
    const key = JSON.stringify([call.context.tenantId, call.agentName, call.door, messageId]);
    for (;;) {
      const earlier = await earlierTask(call, messageId);
      if (earlier?.isThere === true) return earlier.taskId;
      const other = underway.get(key);
      if (other !== undefined) {
        await other;
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      underway.set(key, promise);
      try {
        return await start(call, request, content, earlier?.taskId ?? null, isStreaming);
      } catch (error) {
        if (!(error instanceof MessageTaken)) throw error;
      } finally {
        underway.delete(key);
        resolve();
      }
    }
  };
  return send;
};

export type SendMessage = ReturnType<typeof createSendMessage>;
