import type { Client } from '../../client/client.ts';
import { isSameDefinition } from '../../client/definition-content.ts';
import type { DefinitionDocument, DefinitionProblem } from '../../contract/definition-document.ts';
import { AcpError, errorTable } from '../../contract/errors.ts';
import type { AgentDefinitionRequest, ValidationMessage } from '../../features/agents/agents.schema.ts';
import { reportError } from '../output/error-report.ts';
import { type Applied, bodyOf, storedDefinition } from './apply-definition.ts';
import { type BatchMember, definitionBatch } from './definition-batch.ts';
import { type DefinitionSources, textList } from './definition-sources.ts';

/** What there is to say about one place of a file. */
export interface PlacedFinding extends Omit<ValidationMessage, 'path'> {
  /** Member path; empty for the definition as a whole. */
  readonly path: string;
  /** Null where the file as a whole is meant. */
  readonly line: number | null;
}

/** One definition, or a file that holds none that can be read, and everything that was found. */
export interface CheckedDefinition {
  readonly name: string | null;
  readonly file: string;
  readonly line: number | null;
  readonly inconclusive: boolean;
  readonly findings: readonly PlacedFinding[];
  /** What applying would do; null where an error stands in its way. */
  readonly would: Applied | null;
  readonly exitCode: number;
}

/** A service that cannot be reached, or refuses this credential, will do so for every document. */
export const endsAll = (error: unknown): boolean =>
  error instanceof AcpError &&
  [errorTable['cannot-connect'].exit, errorTable.unauthenticated.exit].includes(errorTable[error.code].exit);

export const unreadableDefinition = ({ file, line, name, field, message }: DefinitionProblem): CheckedDefinition => ({
  name,
  file,
  line,
  inconclusive: false,
  findings: [{ severity: 'Error', code: 'definition-invalid', path: field, message, line }],
  would: null,
  exitCode: errorTable['definition-invalid'].exit,
});

/** The places that a refusal names, or the definition as a whole. */
export const refusalFindings = (document: DefinitionDocument, error: unknown): readonly PlacedFinding[] => {
  const { problem } = reportError(error);
  const { code } = error instanceof AcpError ? error : { code: 'internal' };
  const fields =
    problem.errors === undefined || problem.errors.length === 0
      ? [{ path: '', message: problem.detail }]
      : problem.errors;
  return fields.map(({ path, message }) => ({
    severity: 'Error' as const,
    code,
    path,
    message,
    line: document.lineOf(path),
  }));
};

const calleesOf = (body: AgentDefinitionRequest): string[] => textList(body.callableAgentNames);

const hasInstructions = ({ instructions, instructionsByCulture }: AgentDefinitionRequest): boolean =>
  [instructions, ...Object.values(instructionsByCulture ?? {})].some((text) => typeof text === 'string' && text !== '');

/** Definitions of the same files that would be stored by the time another one is looked at. */
type Earlier = ReadonlyMap<string, AgentDefinitionRequest>;

/** A finding about an agent or a skill that would be there, and as it has to be, by then. */
const comesEarlier = (
  { code, path }: ValidationMessage,
  body: AgentDefinitionRequest,
  earlier: Earlier,
  skills: ReadonlySet<string>,
): boolean => {
  if (code === 'skill-not-found') {
    const index = /^skillNames\[(\d+)\]$/.exec(path ?? '')?.[1];
    return index !== undefined && skills.has(body.skillNames?.[Number(index)] ?? '');
  }
  if (code === 'agent-not-found') {
    const index = /^callableAgentNames\[(\d+)\]$/.exec(path ?? '')?.[1];
    return index !== undefined && earlier.has(body.callableAgentNames?.[Number(index)] ?? '');
  }
  if (code !== 'shared-instructions-not-found') return false;
  const shared = earlier.get(body.sharedInstructionsName ?? '');
  return shared !== undefined && hasInstructions(shared);
};

/**
 * Names from an agent over its calls back to itself, as the calls would be by then; null when there is no such way.
 * The service compares with what is stored, and a definition of the same files may close a circle, or open one.
 */
const circleOf = async (
  client: Client,
  name: string,
  body: AgentDefinitionRequest,
  earlier: Earlier,
): Promise<readonly string[] | null> => {
  const calleesAt = async (agent: string): Promise<readonly string[]> => {
    const definition = agent === name ? body : earlier.get(agent);
    if (definition !== undefined) return calleesOf(definition);
    // An agent that is not there is a finding of its own; one that is defined in code calls none of these.
    const stored = await storedDefinition(client, agent).catch((error: unknown) => {
      if (error instanceof AcpError && error.code === 'agent-code-defined') return null;
      throw error;
    });
    return stored === null ? [] : calleesOf(stored);
  };
  const seen = new Set<string>();
  const ways: (readonly string[])[] = [[name]];
  for (let way = ways.shift(); way !== undefined; way = ways.shift())
    for (const callee of await calleesAt(way.at(-1) ?? name)) {
      if (callee === name) return [...way, name];
      if (seen.has(callee)) continue;
      seen.add(callee);
      ways.push([...way, callee]);
    }
  return null;
};

/** Where an earlier definition plays a part, the calls are followed here; else the service has done so. */
const circleFindings = async (
  client: Client,
  name: string,
  body: AgentDefinitionRequest,
  earlier: Earlier,
  messages: readonly ValidationMessage[],
): Promise<readonly ValidationMessage[]> => {
  if (earlier.size === 0 || calleesOf(body).length === 0) return messages;
  const others = messages.filter(({ code }) => code !== 'call-cycle');
  const circle = await circleOf(client, name, body, earlier);
  if (circle === null) return others;
  const message = `The agents call in a circle: ${circle.join(' → ')}.`;
  return [...others, { severity: 'Error', code: 'call-cycle', path: 'callableAgentNames', message }];
};

const wouldApply = async (client: Client, name: string, body: AgentDefinitionRequest): Promise<Applied> => {
  const stored = await storedDefinition(client, name);
  if (stored === null) return { action: 'created', version: 1 };
  const isSame = isSameDefinition(body, stored);
  return { action: isSame ? 'unchanged' : 'updated', version: isSame ? stored.version : stored.version + 1 };
};

const checkMember = async (
  client: Client,
  { document, name, fault }: BatchMember,
  earlier: Earlier,
  skills: ReadonlySet<string>,
): Promise<CheckedDefinition> => {
  const { file, line } = document;
  const checked = { name, file, line, inconclusive: false };
  const refused = (error: unknown, others: readonly PlacedFinding[] = []): CheckedDefinition => {
    if (endsAll(error)) throw error;
    const all = [...others, ...refusalFindings(document, error)];
    return { ...checked, findings: all, would: null, exitCode: reportError(error).exitCode };
  };
  const body = bodyOf(document);
  const findings: PlacedFinding[] = [];
  try {
    const { inconclusive, messages: answered } = (await client.agents.validate({ body })).body;
    const messages = name === null ? answered : await circleFindings(client, name, body, earlier, answered);
    for (const message of messages.filter((each) => !comesEarlier(each, body, earlier, skills))) {
      const path = message.path ?? '';
      findings.push({ ...message, path, line: document.lineOf(path) });
    }
    const hasErrors = findings.some(({ severity }) => severity === 'Error');
    // A finding about the name says what is wrong with it already.
    if (fault !== null && !findings.some(({ path }) => path === 'name'))
      return { ...refused(fault, findings), inconclusive };
    const report = { ...checked, inconclusive, findings };
    if (hasErrors || name === null) return { ...report, would: null, exitCode: errorTable['definition-invalid'].exit };
    return { ...report, would: await wouldApply(client, name, body), exitCode: 0 };
  } catch (error) {
    return refused(error, findings);
  }
};

/**
 * Every definition of some files as the service would judge it if they were applied in order, one after the other.
 * Nothing is written. Rejects where the service itself is the trouble. `skills`: names of those that are saved before them.
 */
export const checkDefinitions = async function* (
  client: Client,
  { documents, problems }: DefinitionSources,
  skills: ReadonlySet<string> = new Set(),
): AsyncGenerator<CheckedDefinition> {
  for (const problem of problems) yield unreadableDefinition(problem);
  const earlier = new Map<string, AgentDefinitionRequest>();
  for (const member of definitionBatch(documents)) {
    const checked = await checkMember(client, member, earlier, skills);
    if (member.name !== null && checked.would !== null) earlier.set(member.name, bodyOf(member.document));
    yield checked;
  }
};
