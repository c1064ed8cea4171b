import { AcpError } from '../../contract/errors.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import type { ModelProviders } from '../../providers/models/model-provider.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import type { AgentCatalog, KnownAgent } from './agents.catalog.ts';
import { compileAgent } from './agents.compile.ts';
import { type Finding, fieldErrors } from './agents.findings.ts';
import type { AgentReferences } from './agents.rules.ts';
import { type AgentStore, missingAgent, missingVersion } from './agents.store.ts';
import type { ExposedModels } from './exposed-models.ts';
import { tenantReferences } from './tenant-tools.ts';

/** What differs from the current agent; null: nothing. */
export interface VariantChange {
  readonly version: number | null;
  readonly modelProvider: string | null;
  readonly modelId: string | null;
}

export interface AgentVariantDeps {
  readonly catalog: AgentCatalog;
  readonly store: Pick<AgentStore, 'findVersion'>;
  readonly source: AgentSource;
  readonly models: Pick<ExposedModels, 'content'>;
  readonly references: AgentReferences;
  readonly remoteTools: Pick<RemoteTools, 'ready' | 'get' | 'hasServer'>;
}

/** Blames the members of the change, and not the definition, for what they make invalid. */
const variantError = (
  { name, version }: { readonly name: string; readonly version: number },
  { modelProvider, modelId }: VariantChange,
  findings: readonly Finding[],
  providers: Pick<ModelProviders, 'list'>,
): CompileError => {
  const members = new Map<string, string>([
    ...(modelProvider === null ? [] : [['model.provider', 'modelProvider'] as const]),
    ...(modelId === null ? [] : [['model.model', 'modelId'] as const]),
  ]);
  const errors = fieldErrors(
    findings.map((finding) => {
      const path = members.get(finding.path);
      if (path === undefined) return finding;
      if (finding.code !== 'provider-not-registered') return { ...finding, path };
      const names = providers.list().map((provider) => provider.name);
      const configured = names.length === 0 ? 'none is' : `configured: ${names.join(', ')}`;
      return { ...finding, path, message: `The provider "${modelProvider}" is not configured; ${configured}.` };
    }),
  );
  const chosen = [...members.values()].filter((member) => errors.some(({ path }) => path === member));
  if (chosen.length === 0) return new CompileError(name, version, errors);
  const lead = `Agent "${name}" cannot run with the ${chosen.join(' and ')} of the request`;
  return new CompileError(name, version, errors, { lead });
};

/** Agents in another version or on another model than the current one: compiled on demand, never cached. */
export const createAgentVariants = ({ catalog, store, source, models, references, remoteTools }: AgentVariantDeps) => {
  /**
   * The definition, with what it reaches. Throws `agent-not-found`, `version-not-found`, and `replay-not-supported` for
   * a version of a code agent.
   */
  const find = async (tenantId: string, name: string, version: number | null) => {
    const content = models.content(name);
    const current: KnownAgent | null =
      content === undefined
        ? await catalog.find(tenantId, name)
        : { origin: 'code', content, version: 1, isModel: true };
    if (current === null) throw missingAgent(name);
    if (version !== null && current.origin === 'code')
      throw new AcpError(
        'replay-not-supported',
        content === undefined
          ? `Agent "${name}" is defined in code and has no versions.`
          : `"${name}" is a model, which has no versions.`,
      );
    const stored = version === null ? null : await store.findVersion(tenantId, name, version);
    if (version !== null && stored === null) throw missingVersion(name, version);
    const agent: KnownAgent = stored === null ? current : { origin: 'database', ...stored };
    return { agent, reached: await catalog.reach(tenantId, agent.content) };
  };
  return {
    find,
    /** Compiles an agent with a change; `trace` is what the compile belongs to. Also throws CompileError. */
    async compile(
      tenantId: string,
      name: string,
      change: VariantChange,
      trace: TraceParent | null = null,
    ): Promise<CompiledAgent> {
      const { version, modelProvider, modelId } = change;
      if (version === null && modelProvider === null && modelId === null) return source.compile(tenantId, name, trace);
      const { agent: original, reached } = await find(tenantId, name, version);
      const { model } = original.content;
      const chosen = { provider: modelProvider ?? model.provider, model: modelId ?? model.model };
      // What stood in for the model may be the one that is chosen now.
      const fallbacks = model.fallbacks.filter(
        (fallback) => fallback.provider !== chosen.provider || fallback.model !== chosen.model,
      );
      const binding = { ...model, ...chosen, fallbacks };
      const subject = { ...original, content: { ...original.content, model: binding } };
      const { agent, findings } = compileAgent(
        subject,
        reached,
        await tenantReferences(references, remoteTools, tenantId),
      );
      if (agent === null)
        throw variantError({ name, version: original.version }, change, findings, references.providers);
      return agent;
    },
  };
};

export type AgentVariants = ReturnType<typeof createAgentVariants>;
export type AgentVariant = Awaited<ReturnType<AgentVariants['find']>>;
