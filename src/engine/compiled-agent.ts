import type {
  ModelCatalogEntry,
  ModelJson,
  ModelProvider,
  ModelResponseFormat,
  ModelTool,
} from '../providers/models/model-provider.ts';
import type { RegisteredTool } from './tools/registry.ts';

/** What the engine needs of an agent: references resolved, defaults applied, nothing left to look up. Immutable and cached. */
export interface CompiledAgent {
  readonly name: string;
  readonly version: number;
  readonly origin: 'code' | 'database';
  readonly model: CompiledBinding;
  /** Tools by the name the model sees, registered ones and callable agents alike. */
  readonly tools: ReadonlyMap<string, CompiledTool>;
  /** The same tools as they are declared to the model, in the definition's order. */
  readonly modelTools: readonly ModelTool[];
  readonly subAgents: { readonly childDeadlineMs: number | null; readonly waitTimeoutMs: number | null };
  /** Values for this run's placeholders; throws `parameter-invalid` with a finding per parameter. */
  resolveParameters(given: Readonly<Record<string, string>> | null): Readonly<Record<string, string>>;
  /** The system text for a culture, placeholders replaced; null when there is none. */
  instructions(culture: string | null, parameters: Readonly<Record<string, string>>): string | null;
}

export type CompiledTool =
  | { readonly kind: 'tool'; readonly tool: RegisteredTool }
  | { readonly kind: 'agent'; readonly agentName: string };

/** One provider and model, ready to be called. */
export interface CompiledTarget {
  readonly provider: ModelProvider;
  readonly model: string;
  /** The model's catalog entry, null when it is not listed. */
  readonly catalog: ModelCatalogEntry | null;
  /** The binding's provider settings for this provider, prefix removed. */
  readonly settings: Readonly<Record<string, ModelJson>>;
}

export interface CompiledBinding extends CompiledTarget {
  readonly fallbacks: readonly CompiledTarget[];
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly maxOutputTokens: number | null;
  readonly reasoningEffort: string | null;
  readonly responseFormat: ModelResponseFormat | null;
  readonly allowConcurrentToolCalls: boolean;
  /** How old the answer to an equal call may be; null: every call reaches the model. */
  readonly responseCacheMs: number | null;
}

/** Where the engine gets agents from. */
export interface AgentSource {
  /**
   * The agent that is current now. Throws AcpError `agent-not-found`, or CompileError when it exists and does not compile.
   */
  compile(tenantId: string, name: string): Promise<CompiledAgent>;
}

/** A definition that exists and does not compile; recorded as a failed run of class CompilationFailed. */
export class CompileError extends Error {
  readonly version: number;
  readonly findings: readonly { readonly path: string; readonly message: string }[];

  constructor(
    agentName: string,
    version: number,
    findings: readonly { readonly path: string; readonly message: string }[],
  ) {
    super(`Agent "${agentName}" does not compile: ${findings.map((finding) => finding.message).join(' ')}`);
    this.name = 'CompileError';
    this.version = version;
    this.findings = findings;
  }
}
