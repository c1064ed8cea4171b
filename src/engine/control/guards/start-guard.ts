import type { Json } from '../../../contract/schema.ts';
import type { CompiledAgent } from '../../compiled-agent.ts';
import type {
  AskedSettings,
  AttachmentContent,
  AttachmentReference,
  ChatMessage,
  ContentPart,
  GivenContext,
  LoadedAttachments,
  OpenCall,
  ReadResource,
  TurnResume,
} from '../../context/index.ts';
import { guardedAsked, shownWith } from './asked-guard.ts';
import type { GuardSource } from './content-guard.ts';
import type { ContentGuards, GuardFinding } from './guard-port.ts';
import { checkedJson } from './json-texts.ts';
import {
  type Block,
  blockedText,
  blockRun,
  type GuardedRun,
  guardedText,
  guardsOf,
  inspectText,
  type TextPlace,
  tellMasks,
} from './run-guard.ts';

/** What a run starts with. */
type StartPlan = GuardedRun['plan'] & {
  readonly agent: Pick<CompiledAgent, 'resolveParameters' | 'modelTools'>;
  readonly message: string | null;
  readonly documents: readonly { readonly name: string; readonly content: string }[];
  readonly attachments: readonly AttachmentReference[];
  readonly parameters: Readonly<Record<string, string>>;
  readonly resume: TurnResume | null;
  readonly given: GivenContext | null;
  readonly resources: readonly ReadResource[] | null;
  readonly asked: AskedSettings | null;
};

/** A run whose plan can still be replaced by what the guards leave of it. */
interface StartingRun<P extends StartPlan> extends GuardedRun {
  plan: P;
}

/** What the guards say of what a run starts with. */
export interface GuardedStart {
  readonly masks: readonly { readonly source: GuardSource; readonly findings: readonly GuardFinding[] }[];
  readonly block: Block | null;
}

/** `isPart`: it is part of a text that was inspected already, and what is found in it has been told. */
type Pass = (text: string, place: TextPlace, isPart?: true) => Promise<string>;

const user: TextPlace = { source: 'UserMessage' };
const document: TextPlace = { source: 'Document', mediaType: 'text/plain' };

const guardedReference = async <R extends AttachmentReference>(reference: R, pass: Pass): Promise<R> => ({
  ...reference,
  fileName: await pass(reference.fileName, { source: 'Document', mediaType: reference.mediaType }),
});

const guardedPart = async (part: ContentPart, pass: Pass): Promise<ContentPart> => {
  if (part.type === 'Text') return { ...part, text: await pass(part.text, user) };
  if (part.type === 'Document')
    return { ...part, name: await pass(part.name, document), text: await pass(part.text, document) };
  if (part.type === 'Attachment') return guardedReference(part, pass);
  if (part.type === 'ApprovalResponse' && part.reason !== null)
    return { ...part, reason: await pass(part.reason, user) };
  return part;
};

const noNames: ReadonlySet<string> = new Set();

const guardedGivenPart = async (part: ContentPart, pass: Pass): Promise<ContentPart> => {
  if (part.type === 'ToolCall') {
    const checked = await checkedJson(part.arguments as Json, noNames, (text) => pass(text, user));
    return { ...part, arguments: (checked?.value ?? null) as typeof part.arguments };
  }
  if (part.type !== 'ToolResult') return guardedPart(part, pass);
  const place: TextPlace = { source: 'ToolResult', toolName: part.toolName };
  return {
    ...part,
    result: part.result === null ? null : await pass(part.result, place),
    errorMessage: part.errorMessage === null ? null : await pass(part.errorMessage, place),
  };
};

/** What the person said; answers and results of earlier steps were inspected when they came. */
const guardedMessage = async (message: ChatMessage, pass: Pass): Promise<ChatMessage> => {
  if (message.role !== 'User') return message;
  return { ...message, contents: await Array.fromAsync(message.contents, (part) => guardedPart(part, pass)) };
};

/** Results of the caller's program, and refusals, which repeat the reason that was given for them. */
const guardedCall = async (open: OpenCall, pass: Pass, reasons: ReadonlyMap<string, string>): Promise<OpenCall> => {
  const { call, answer } = open;
  if (typeof answer === 'string') return open;
  if (answer.type === 'ClientResult') {
    const place: TextPlace = { source: 'ToolResult', toolName: call.toolName };
    const { result, errorMessage } = answer;
    return {
      ...open,
      answer: {
        ...answer,
        result: result === null ? null : await pass(result, place),
        errorMessage: errorMessage === null ? null : await pass(errorMessage, place),
      },
    };
  }
  if (answer.type === 'QuestionAnswers') {
    const place: TextPlace = { source: 'ToolResult', toolName: call.toolName };
    const answers = await Array.fromAsync(answer.answers, async ({ key, result }) => ({
      key,
      result: result === null ? null : await pass(result, place),
    }));
    return { ...open, answer: { ...answer, answers } };
  }
  const told = answer.errorMessage ?? '';
  for (const [reason, checkedReason] of reasons)
    if (reason !== '' && checkedReason !== reason && told.endsWith(reason))
      return { ...open, answer: { ...answer, errorMessage: told.slice(0, -reason.length) + checkedReason } };
  return open;
};

const reasonsOf = (messages: readonly ChatMessage[]): string[] =>
  messages.flatMap(({ contents }) =>
    contents.flatMap((part) => (part.type === 'ApprovalResponse' ? [(part.reason ?? '').trim()] : [])),
  );

const guardedResume = async (resume: TurnResume, pass: Pass): Promise<TurnResume> => {
  const messages = await Array.fromAsync(resume.messages, (message) => guardedMessage(message, pass));
  const checkedReasons = reasonsOf(messages);
  const reasons = new Map(reasonsOf(resume.messages).map((reason, index) => [reason, checkedReasons[index] ?? '']));
  const calls = await Array.fromAsync(resume.calls, (open) => guardedCall(open, pass, reasons));
  const next = resume.next === undefined ? {} : { next: await guardedMessage(resume.next, pass) };
  return { ...resume, messages, calls, ...next };
};

/** Whatever role it names, a caller has said it; what it says that tools answered is inspected as that. */
const guardedGiven = async ({ history, instructions }: GivenContext, pass: Pass): Promise<GivenContext> => ({
  instructions: instructions === null ? null : await pass(instructions, user),
  history: await Array.fromAsync(history, async (message) => ({
    ...message,
    contents: await Array.fromAsync(message.contents, (part) => guardedGivenPart(part, pass)),
  })),
});

/** What the definition itself gives is not the caller's; null: the agent needs values from its caller. */
const defaultsOf = ({ agent }: StartPlan): Readonly<Record<string, string>> => {
  try {
    return agent.resolveParameters(null);
  } catch {
    // A parameter is required: then every value may be the caller's.
    return {};
  }
};

const guardedParameters = async (plan: StartPlan, pass: Pass): Promise<StartPlan['parameters']> => {
  const entries = Object.entries(plan.parameters);
  if (entries.length === 0) return plan.parameters;
  const defaults = defaultsOf(plan);
  return Object.fromEntries(
    await Array.fromAsync(entries, async ([name, value]) => [
      name,
      defaults[name] === value ? value : await pass(value, user),
    ]),
  );
};

const guardedDocuments = <D extends { readonly name: string; readonly content: string }>(
  documents: readonly D[],
  pass: Pass,
): Promise<D[]> =>
  Array.fromAsync(documents, async (one) => ({
    ...one,
    name: await pass(one.name, document),
    content: await pass(one.content, document),
  }));

/** What its caller decided of the agent, and the agent as it is with that. */
const guardedDecisions = async <P extends StartPlan>(plan: P, pass: Pass): Promise<Pick<P, 'asked' | 'agent'>> => {
  if (plan.asked === null) return { asked: null, agent: plan.agent };
  const asked = await guardedAsked(plan.asked, {
    whole: (text) => pass(text, user),
    part: (text) => pass(text, user, true),
  });
  return { asked, agent: shownWith(plan.agent, asked) };
};

const guardedPlan = async <P extends StartPlan>(plan: P, pass: Pass): Promise<P> => {
  const message = plan.message === null ? null : await pass(plan.message, user);
  const documents = await guardedDocuments(plan.documents, pass);
  const attachments = await Array.fromAsync(plan.attachments, (reference) => guardedReference(reference, pass));
  // A further attempt goes on with what the first one was left with.
  const isFirst = plan.resume !== null && plan.resume.earlier === null;
  return {
    ...plan,
    message,
    documents,
    attachments,
    parameters: await guardedParameters(plan, pass),
    given: plan.given === null ? null : await guardedGiven(plan.given, pass),
    resources: plan.resources === null ? null : await guardedDocuments(plan.resources, pass),
    resume: isFirst && plan.resume !== null ? await guardedResume(plan.resume, pass) : plan.resume,
    ...(await guardedDecisions(plan, pass)),
  };
};

/**
 * Inspects everything that a run starts with, and gives it the plan that is left: with masked texts, and after a block
 * without any. Not ended by a cancel: what is recorded of the run must have been inspected. Null: nothing is inspected.
 */
export const guardedStart = async <P extends StartPlan>(
  run: StartingRun<P>,
  allGuards: ContentGuards,
): Promise<GuardedStart | null> => {
  const guards = guardsOf(allGuards, 'UserMessage');
  if (guards === null) return null;
  const masks: { source: GuardSource; findings: readonly GuardFinding[] }[] = [];
  let block = null as Block | null;
  const plan = await guardedPlan(run.plan, async (text, place, isPart) => {
    if (block !== null || text === '') return text;
    const inspected = await inspectText(run, guards, text, place);
    if (inspected.masks.length > 0 && isPart !== true) masks.push({ source: place.source, findings: inspected.masks });
    if (inspected.block !== null) block = { source: place.source, finding: inspected.block };
    return inspected.text;
  });
  // What follows a blocked text was not inspected, and what was stands beside it: none of it is kept.
  const empty: Pass = async (text) => (text === '' ? text : blockedText);
  run.plan = block === null ? plan : await guardedPlan(run.plan, empty);
  return { masks, block };
};

export const tellStart = (run: GuardedRun, start: GuardedStart | null): void => {
  for (const { source, findings } of start?.masks ?? []) tellMasks(run, source, findings);
};

/** Once the row stands, so that a blocked run is one that can be found. Throws RunFailure of class ContentBlocked. */
export const refuseBlocked = async (run: GuardedRun, guards: ContentGuards, { block }: GuardedStart): Promise<void> => {
  if (block !== null) throw await blockRun(run, guards, block);
};

/** The texts among the attachments of a run, earlier turns' too: only references stand in a history. */
export const guardedAttachments = async (
  run: GuardedRun,
  guards: ContentGuards,
  loaded: LoadedAttachments,
  references: readonly AttachmentReference[],
): Promise<LoadedAttachments> => {
  if (guardsOf(guards, 'Document') === null) return loaded;
  const changed = new Map<string, AttachmentContent>();
  for (const { attachmentId, mediaType } of references) {
    const content = loaded.get(attachmentId);
    if (content?.kind !== 'text' || changed.has(attachmentId)) continue;
    const text = await guardedText(run, guards, content.text, { source: 'Document', mediaType });
    changed.set(attachmentId, { kind: 'text', text });
  }
  if (changed.size === 0) return loaded;
  return {
    get: (attachmentId) => changed.get(attachmentId) ?? loaded.get(attachmentId),
    release() {
      changed.clear();
      loaded.release();
    },
  };
};
