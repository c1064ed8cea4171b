import { AcpError, invalidField } from '../../contract/errors.ts';
import { sessionIdPattern } from '../../contract/schema.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { OpenAiResponseRow } from '../../db/tables/openai.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AskedSettings, ChatMessage, GivenContext } from '../../engine/context/index.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import { isModelName } from '../agents/index.ts';
import { askedAgent, type Entrance, type Launch, type RunAnswers, warningHeader } from '../runs/index.ts';
import type { GivenMessages } from './given-messages.ts';
import { hexOf, runOfItem } from './items.ts';
import { type IsKept, keptItems } from './kept-items.ts';
import { modelSettings } from './model-request.ts';
import type { OpenAiTelemetry } from './openai-telemetry.ts';
import {
  type Adjustment,
  agentNamed,
  askedSettings,
  checkedMetadata,
  formatOf,
  parametersIn,
  refuseKeyedStream,
  refuseUnsupported,
  tokenLimit,
  withParameters,
} from './request.rules.ts';
import { inTermsOf, namesOf } from './request-names.ts';
import { answeredBehind, answerNames, unknownCall } from './response-answers.ts';
import { ResponseEvents } from './response-events.ts';
import { effectiveSettings, formsOf, headOf } from './response-head.ts';
import { type ResponseInput, responseInput } from './response-input.ts';
import type { ResponseReferences } from './response-references.ts';
import type { ResponseSource, ResponseSources } from './response-sources.ts';
import type { responseOperations } from './responses.operations.ts';
import type { InputItem, ResponseRequest } from './responses.schema.ts';
import type { ResponseStore } from './responses.store.ts';
import { begunLater, heldForRateLimit, translated } from './run-frames.ts';
import { asFunctionItem, type FlatTool, foundTools, toolFormsOf } from './tool-forms.ts';

export interface ResponseStartDeps {
  readonly launch: Pick<Launch, 'enter'>;
  readonly answers: RunAnswers;
  readonly given: GivenMessages;
  readonly telemetry: OpenAiTelemetry;
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
  readonly store: Pick<ResponseStore, 'opened'>;
  readonly sources: ResponseSources;
  readonly referred: ResponseReferences;
  /** False: conversations are refused. */
  readonly conversations: boolean;
  readonly recordingEnabled: boolean;
  readonly removeFork: (tenantId: string, sessionId: string) => Promise<void>;
  readonly now: () => number;
}

const responseIdOf = (runId: string): string => `resp_${hexOf(runId)}`;

const sessionId = new RegExp(sessionIdPattern);

/** What a request asks for, checked. */
interface Asked {
  readonly input: ResponseInput;
  readonly adjustment: Adjustment;
  readonly found: readonly FlatTool[];
  readonly metadata: Record<string, string>;
  readonly agentName: string;
  readonly conversationId: string | null;
  readonly source: ResponseSource | null;
  readonly isKept: boolean;
  readonly isStreaming: boolean;
}

const conversationOf = ({ conversation }: ResponseRequest, enabled: boolean): string | null => {
  if (conversation === undefined || conversation === null) return null;
  if (!enabled)
    throw new AcpError('unsupported-parameter', 'conversation is switched off here.', {
      details: { errors: [{ path: 'conversation', message: 'is switched off here' }] },
    });
  const id = typeof conversation === 'string' ? conversation : conversation.id;
  // Sessions of responses are theirs alone: each stays as it was.
  if (!sessionId.test(id) || id.startsWith('resp_')) throw invalidField('conversation', 'is no id of a conversation');
  return id;
};

/** Null: the request says no more than a message. */
const givenOf = (history: readonly ChatMessage[], instructions: string | null): GivenContext | null =>
  history.length === 0 && instructions === null ? null : { history, instructions };

const nothingBefore = { before: [], behind: [] } as const;

/** What was said up to the earlier response, for a run that no session brings it to; and the results behind it. */
const unkeptBefore = (source: ResponseSource, input: ResponseInput, runId: string) => ({
  before: source.history.map((message) => ({ ...message, runId })),
  behind: answeredBehind(source, input),
});

type Create = Handlers<typeof responseOperations>['create'];
type Context = Parameters<Create>[0];
type Request = Parameters<Create>[1];
type Answer = Awaited<ReturnType<Create>>;

type Input = ResponseRequest['input'] | undefined;

const ofRun = namesOf('input');

const nothingKept: IsKept = () => null;

/** Whether an item may be one that the history has. */
const mayBeKept = ({ type, id }: InputItem): boolean =>
  type === 'function_call' || (typeof id === 'string' && runOfItem(id) !== null);

/** One run for each response, in a session of its own, in that of a conversation, or in none. Design: docs/design/openai.md. */
export const responseStart = (deps: ResponseStartDeps): Pick<Handlers<typeof responseOperations>, 'create'> => {
  const { launch, answers, given, telemetry, sources } = deps;

  /** Nothing is looked up for an input that says what is new alone. */
  const keptOf = async (context: CallContext, body: Request['body'], items: Input): Promise<IsKept> => {
    if (!Array.isArray(items) || !items.some(mayBeKept)) return nothingKept;
    const previous = body.previous_response_id ?? null;
    if (previous !== null) return keptItems(await sources.historyOf(context, { responseId: previous }));
    // A request that is sent again with its key is read as it was the first time, and has become part of the history since.
    if (context.once !== null) return nothingKept;
    const conversationId = conversationOf(body, deps.conversations);
    return conversationId === null ? nothingKept : keptItems(await sources.historyOf(context, { conversationId }));
  };

  const askedOf = async (context: CallContext, body: ResponseRequest): Promise<Asked> => {
    refuseUnsupported(body);
    const metadata = checkedMetadata(body.metadata);
    const referred = await deps.referred(context, body.input);
    const found = foundTools(referred);
    const items = Array.isArray(referred) ? referred.map(asFunctionItem) : referred;
    const input = responseInput(items, body.instructions, await keptOf(context, body, items));
    const adjustment: Adjustment = {
      maxTokens: tokenLimit({ max_output_tokens: body.max_output_tokens }),
      format: formatOf(body.text?.format, 'text.format'),
      tools: (body.tools ?? []).map(({ type, name }) => ({ type, name: name ?? null })),
      toolChoice: body.tool_choice,
    };
    const conversationId = conversationOf(body, deps.conversations);
    const previous = body.previous_response_id ?? null;
    if (conversationId !== null && previous !== null)
      throw invalidField('previous_response_id', 'cannot be sent with conversation');
    if (conversationId !== null && body.store === false) throw invalidField('store', 'must be true with conversation');
    const [answer] = input.answers;
    if (conversationId === null && previous === null && answer !== undefined) throw unknownCall(answer);
    const agentName = await agentNamed(body, (name) => deps.agentExists(context.tenantId, name));
    if (conversationId !== null) await sources.assertMayBegin(context, conversationId);
    return {
      input,
      adjustment,
      found,
      metadata,
      agentName,
      conversationId,
      source: previous === null ? null : await sources.find(context, previous),
      isKept: body.store !== false,
      isStreaming: body.stream === true,
    };
  };

  const begin = async (context: Context, { body, query }: Request, asked: Asked): Promise<Answer> => {
    const { input, source, conversationId, isKept, isStreaming } = asked;
    if (isStreaming) context.openStream?.();
    const { tenantId } = context;
    const toolResults = input.answers.map(({ callId, result }) => ({ callId, result }));
    const answersHere = isKept && toolResults.length > 0;
    const parameters = parametersIn(asked.metadata);
    const forms = isModelName(asked.agentName) ? toolFormsOf(body.tools, asked.found) : null;
    let agent: CompiledAgent | null = null;
    let settings: AskedSettings | null = null;
    let forked: string | null = null;
    let row: OpenAiResponseRow | null = null;

    const rowOf = (
      runId: string,
      ownerId: string | null,
      metadata: Record<string, string> = asked.metadata,
    ): OpenAiResponseRow => ({
      tenant_id: tenantId,
      id: responseIdOf(runId),
      run_id: runId,
      session_id: conversationId ?? responseIdOf(runId),
      conversation_id: conversationId,
      previous_response_id: source?.row.id ?? null,
      owner_id: ownerId,
      agent_name: asked.agentName,
      metadata: JSON.stringify(metadata),
      settings: JSON.stringify(agent === null ? {} : effectiveSettings(agent, forms)),
      created_at: deps.now(),
    });

    const entrance: Entrance = await launch.enter({
      kind: answersHere ? 'answers' : 'request',
      context,
      agentName: asked.agentName,
      body: { sessionId: conversationId ?? source?.session.id ?? null, ...(answersHere ? { toolResults } : {}) },
      isStreaming,
      target: { sessionId: conversationId ?? source?.session.id ?? null },
      work: null,
      outside: {
        adjusted(compiled) {
          const ofModel = isModelName(compiled.name) ? modelSettings(compiled, body, 'response', asked.found) : null;
          settings = askedSettings(compiled, asked.adjustment, ofModel);
          agent = askedAgent(compiled, settings);
          return agent;
        },
        async parts(runId) {
          const id = responseIdOf(runId);
          const session = isKept ? (conversationId ?? id) : null;
          if (isKept && source !== null) {
            await sources.fork(source, id);
            forked = id;
          }
          /** Kept as guards have left what the model reads of it. */
          const opened = ({ agent: shown, parameters: values }: RunPlan) => {
            agent = shown;
            row = rowOf(runId, entrance.ownerId, withParameters(asked.metadata, values));
            return deps.store.opened(row);
          };
          const { before, behind } = isKept || source === null ? nothingBefore : unkeptBefore(source, input, runId);
          const turn = await given(context, { ...input, history: [...behind, ...input.history] }, session, runId);
          const history = [...before, ...turn.history];
          const { message, attachmentIds } = turn;
          return {
            body: {
              message,
              attachmentIds,
              parameters,
              sessionId: session,
              ...(answersHere ? { toolResults } : {}),
            },
            given: givenOf(history, input.instructions),
            asked: settings,
            opening: isKept ? [opened] : [],
          };
        },
      },
    });

    /** A session that was made for a run which did not begin. */
    const undo = async (error: unknown): Promise<never> => {
      const began = error instanceof AcpError && error.details.runId !== undefined;
      if (forked !== null && !began) await deps.removeFork(tenantId, forked).catch(() => undefined);
      throw error;
    };
    const eventsFor = (runId: string): ResponseEvents => {
      const shown = row ?? rowOf(runId, null);
      return new ResponseEvents(runId, headOf(shown, isKept && deps.recordingEnabled), formsOf(shown));
    };

    if (isStreaming) {
      const { run, stream } = await answers
        .streamed(context, entrance, query.onDisconnect, heldForRateLimit)
        .catch(undo);
      telemetry.streams(context, 'invoke_agent', run, responseIdOf(run.id), conversationId);
      return {
        status: 200,
        stream: translated(
          stream,
          begunLater(() => eventsFor(run.id)),
        ),
        headers: { 'X-Run-Id': run.id },
      };
    }
    const answer = async () => {
      let events: ResponseEvents | null = null;
      const follow = (begun: ActiveRun): void => {
        telemetry.began(context, 'invoke_agent', begun, responseIdOf(begun.id), conversationId);
        begun.log.subscribe(
          (frames) => {
            events ??= eventsFor(begun.id);
            for (const frame of frames) events.frames(frame);
          },
          () => undefined,
        );
      };
      const { run } = await answers.toEnd(context, entrance, query.onDisconnect, follow).catch(undo);
      const { response } = events ?? eventsFor(run.id);
      const headers = { 'X-Run-Id': run.id, ...warningHeader(warningsOf(run)) };
      return { status: 200, body: response, headers } as const;
    };
    return context.once === null ? await answer() : await context.once(entrance.ownerId, answer);
  };

  return {
    async create(context, request) {
      const { body, headers } = request;
      refuseKeyedStream(headers['idempotency-key'], body.stream === true);
      const asked = await askedOf(context, body);
      const named = answerNames(asked.input.answers);
      return inTermsOf((path) => named(path) ?? ofRun(path), begin(context, request, asked));
    },
  };
};
