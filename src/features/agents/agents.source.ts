import { AcpError } from '../../contract/errors.ts';
import { type StoreEntries, tenantKey } from '../../core/instance-state.ts';
import { errorTypeOf, type Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import { versionText } from '../../engine/record/index.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import type { AgentSkills } from '../skills/index.ts';
import { boundProviderFindings } from './agent-providers.rules.ts';
import type { AgentCatalog } from './agents.catalog.ts';
import { type Compilation, compileAgent } from './agents.compile.ts';
import { fieldErrors } from './agents.findings.ts';
import type { AgentReferences } from './agents.rules.ts';

import { missingAgent, stampedVersion, stampOf } from './agents.store.ts';
import type { ExposedModels } from './exposed-models.ts';

import { hasSameTools, tenantReferences, type UsedTools, usedTools } from './tenant-tools.ts';

/** A compilation and what it was made of; it holds while that is current. */
interface CacheEntry {
  readonly compilation: Compilation;
  readonly version: number;
  /** Of the agent itself first, then of every stored name that it reaches. */
  readonly keys: readonly string[];
  /** Null for a name without an agent. */
  readonly stamps: readonly (string | null)[];
  /** Skills that it names, with what they were; empty for one that was not there. */
  readonly skillNames: readonly string[];
  readonly fingerprints: readonly string[];
  readonly remoteTools: UsedTools;
}

// An agent may carry several MiB of instructions, so the cache is bounded by count; the oldest goes first.
const maxCached = 1000;

const isSame = (now: readonly unknown[], then: readonly unknown[]): boolean =>
  now.every((value, index) => value === then[index]);

const compiled = (name: string, { compilation, version }: CacheEntry): CompiledAgent => {
  if (compilation.agent !== null) return compilation.agent;
  throw new CompileError(name, version, fieldErrors(compilation.findings));
};

export interface AgentSourceDeps {
  readonly catalog: AgentCatalog;
  /** Stamps of agents. */
  readonly versions: StoreEntries<string>;
  readonly skills: AgentSkills;
  readonly remoteTools: Pick<RemoteTools, 'ready' | 'get' | 'hasServer'>;
  readonly references: AgentReferences;
  /** Compiled at start; they never change. */
  readonly codeAgents: ReadonlyMap<string, CompiledAgent>;
  readonly models: Pick<ExposedModels, 'compiled'>;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'settings' | 'begin' | 'finish'>;
}

/**
 * Compiled agents by tenant and name. A cached one is used while its own version and those of all agents that it calls
 * or shares instructions with, and of its skills, are current: then a compile is a few map lookups.
 */
export const createAgentSource = ({
  catalog,
  versions,
  skills,
  remoteTools,
  references,
  codeAgents,
  models,
  telemetry,
}: AgentSourceDeps): AgentSource => {
  const cache = new Map<string, CacheEntry>();
  const failures = telemetry.metrics.counter(
    'acp.agent_source.failures',
    'Times that a source of agents could not be read.',
    '{failure}',
    ['acp.agent_source.name'],
  );
  /** Counts failures of the source; what is wrong with the agent itself is not one. */
  const counted = <T>(work: Promise<T>): Promise<T> => {
    if (!telemetry.metrics.counts) return work;
    return work.catch((error: unknown) => {
      if (!(error instanceof CompileError || (error instanceof AcpError && error.code === 'agent-not-found')))
        failures.add(1, ['database']);
      throw error;
    });
  };
  const readAgent = async (tenantId: string, name: string, version?: number): Promise<CacheEntry | null> => {
    const agent = await (version === undefined
      ? catalog.find(tenantId, name)
      : catalog.findVersion(tenantId, name, version));
    if (agent === null) return null;
    const { skillNames } = agent.content;
    const reached = await catalog.reach(tenantId, agent.content);
    return {
      compilation: compileAgent(agent, reached, await tenantReferences(references, remoteTools, tenantId)),
      keys: [name, ...reached.stamps.keys()].map((reachedName) => tenantKey(tenantId, reachedName)),
      version: agent.version,
      stamps: [agent.origin === 'code' ? null : stampOf(agent), ...reached.stamps.values()],
      skillNames,
      fingerprints: skillNames.map((skill) => reached.skills.get(skill)?.fingerprint ?? ''),
      remoteTools: usedTools(agent.content, references, remoteTools, tenantId),
    };
  };
  const compileNow = (...which: Parameters<typeof readAgent>): Promise<CacheEntry | null> =>
    counted(readAgent(...which));
  /** The same from memory alone, which is enough for nearly every run. */
  const isKnownCurrent = (tenantId: string, { skillNames, keys, stamps, ...entry }: CacheEntry): boolean =>
    skillNames.length === 0 &&
    hasSameTools(remoteTools, tenantId, entry.remoteTools) &&
    keys.every((key, index) => versions.known(key) === stamps[index]);
  const isCurrent = async (tenantId: string, entry: CacheEntry): Promise<boolean> =>
    isSame(await versions.readAll(entry.keys), entry.stamps) &&
    (entry.skillNames.length === 0 ||
      isSame(await skills.fingerprints(tenantId, entry.skillNames), entry.fingerprints)) &&
    hasSameTools(remoteTools, tenantId, entry.remoteTools);
  // Checked at every use and never cached: a policy may change at any time.
  const allowed = (tenantId: string, agent: CompiledAgent): CompiledAgent => {
    const findings = boundProviderFindings(tenantId, agent.model.provider.name, references.allowsProvider);
    if (findings.length === 0) return agent;
    throw new CompileError(agent.name, agent.version, fieldErrors(findings), { type: 'provider_not_allowed' });
  };
  /** What never changes while the process runs. */
  const fixed = (name: string): CompiledAgent | undefined => codeAgents.get(name) ?? models.compiled(name);
  const current = async (tenantId: string, name: string, span: Span | null): Promise<CompiledAgent> => {
    const code = fixed(name);
    const key = tenantKey(tenantId, name);
    const cached = code === undefined ? cache.get(key) : undefined;
    const isCached =
      cached !== undefined && (isKnownCurrent(tenantId, cached) || (await counted(isCurrent(tenantId, cached))));
    span?.set({ 'acp.cache.hit': code !== undefined || isCached });
    if (code !== undefined) return allowed(tenantId, code);
    if (isCached) return allowed(tenantId, compiled(name, cached));
    const entry = await compileNow(tenantId, name);
    cache.delete(key);
    if (entry === null) throw missingAgent(name);
    const oldest = cache.keys().next();
    if (cache.size >= maxCached && oldest.done !== true) cache.delete(oldest.value);
    cache.set(key, entry);
    return allowed(tenantId, compiled(name, entry));
  };
  /** Null: there is none, or it is another agent's. That is found out first: whether another one compiles is of no account. */
  const inVersion = async (
    tenantId: string,
    name: string,
    version: number,
    savedAt: number | null | undefined,
  ): Promise<CompiledAgent | null> => {
    if (fixed(name) !== undefined) return typeof savedAt === 'number' ? null : source.compile(tenantId, name);
    if (savedAt === null) return null;
    const isIt = (stamp: string | null | undefined): boolean =>
      savedAt === undefined || stamp === stampOf({ version, updatedAt: savedAt });
    const stamp = (await versions.read(tenantKey(tenantId, name))) ?? null;
    if (stamp !== null && stampedVersion(stamp) === version) return isIt(stamp) ? source.compile(tenantId, name) : null;
    const entry = await compileNow(tenantId, name, version);
    return entry !== null && isIt(entry.stamps[0]) ? allowed(tenantId, compiled(name, entry)) : null;
  };
  const source: AgentSource = {
    async compileVersion(tenantId, name, version, savedAt) {
      const agent = await inVersion(tenantId, name, version, savedAt);
      if (agent === null)
        throw new AcpError('agent-not-found', `There is no version ${version} of agent "${name}", or not any more.`);
      return agent;
    },
    async compile(tenantId, name, trace = null) {
      const span = telemetry.begin('acp.agent.compile', 'Internal', trace, {
        'gen_ai.agent.name': name,
        'acp.tenant.id': tenantId,
      });
      if (span === null) return await current(tenantId, name, null);
      try {
        const agent = await current(tenantId, name, span);
        if (telemetry.settings.includeAgentVersion) span.set({ 'gen_ai.agent.version': versionText(agent.version) });
        telemetry.finish(span);
        return agent;
      } catch (error) {
        telemetry.finish(span, errorTypeOf(error));
        throw error;
      }
    },
  };
  return source;
};
