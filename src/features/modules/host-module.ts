import type { Role } from '../../contract/authority.ts';
import { verifyWebhook } from '../../core/received-webhook.ts';
import type { ApprovalPolicy, ApprovalPresenter, ContentGuard } from '../../engine/control/index.ts';
import type { RunEventListener } from '../../engine/record/index.ts';
import { type ToolAuthorizer, type ToolDefinition, ToolError } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { AgentDefinitionRequest } from '../agents/index.ts';
import type { DataSubjectResolver } from '../data-subjects/index.ts';
import type { ModuleJobHandler } from '../jobs/index.ts';
import type { Judge } from '../judges/index.ts';
import type { McpTokenStore } from '../mcp-servers/index.ts';
import type { ArchiveSink } from '../retention/index.ts';
import type { AttributionResolver } from './attribution.ts';
import type { DeploymentTokenSource } from './deployment-credential.ts';
import type { ModuleHost } from './module-audit.ts';
import type { RolePolicy } from './role-policies.ts';
import type { RunAuthorizationHandler } from './run-authorization.ts';

/** A skill of the host, for every tenant: the members of a stored skill, without those that the store adds. */
export interface HostSkill {
  /** 1 to 64 of `a-z 0-9 -`, no leading, trailing or double hyphen. */
  readonly name: string;
  /** 1 to 1024 characters, not blank. */
  readonly description: string;
  /** Markdown. */
  readonly instructions: string;
  readonly compatibility?: string | null;
  readonly license?: string | null;
  /** Space-separated. */
  readonly allowedTools?: string | null;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly resources?: readonly {
    readonly name: string;
    readonly description?: string | null;
    readonly mediaType?: string;
    readonly content: string;
  }[];
  readonly scripts?: readonly {
    readonly name: string;
    readonly description?: string | null;
    /** Without the dot. */
    readonly extension: string;
    readonly content: string;
    /** A JSON Schema object as text; null: takes no arguments. */
    readonly parametersSchema?: string | null;
  }[];
}

/** Code that a host adds to the service. */
export interface HostModule {
  /** Default: the file's name without its extension. Unique among the modules of a host. */
  readonly name?: string;
  readonly tools?: readonly ToolDefinition[];
  /** Asked before every call of every tool; at most one module may have it. */
  readonly toolAuthorizer?: ToolAuthorizer;
  /** Decides who may start and see runs; at most one module may have it. */
  readonly runAuthorization?: RunAuthorizationHandler;
  /** Says who runs are for; at most one module may have it. */
  readonly attributionResolver?: AttributionResolver;
  /** Decide the roles of callers with a token of the identity provider, while `Host:RequireRolePolicies` is on. */
  readonly rolePolicies?: Readonly<Partial<Record<Role, RolePolicy>>>;
  /** Agents with origin `code`, as in the files of `Host:Agents`. */
  readonly agents?: readonly AgentDefinitionRequest[];
  /** Decides which calls need an approval; at most one module may have it. */
  readonly approvalPolicy?: ApprovalPolicy;
  /** At most one for each tool. */
  readonly approvalPresenters?: readonly ApprovalPresenter[];
  /** By agent name. */
  readonly structuredResponseValidators?: Readonly<Record<string, StructuredResponseValidator>>;
  /** By the kind that definitions name. */
  readonly loopCriteria?: Readonly<Record<string, LoopCriterionEvaluator>>;
  readonly skills?: readonly HostSkill[];
  /** Takes what retention archives, in place of `Host:ArchiveFolder`; at most one module may have it. */
  readonly archiveSink?: ArchiveSink;
  /** Asked in their order about every text that goes into a model and comes out of it. */
  readonly guards?: readonly ContentGuard[];
  /** Hear every event of every run. */
  readonly eventListeners?: readonly RunEventListener[];
  /** Score finished runs when they are asked to. */
  readonly judges?: readonly Judge[];
  /** Work that schedules start, by keys of its own. */
  readonly jobs?: readonly ModuleJobHandler[];
  /** Says who a person is, for export and erasure; at most one module may have it. */
  readonly dataSubjectResolver?: DataSubjectResolver;
  /** Keeps the OAuth tokens of MCP servers, in place of `Mcp:OAuthTokenStore`; at most one module may have it. */
  readonly mcpTokenStore?: McpTokenStore;
  /** Gives the tokens of calls to `Providers:AzureOpenAI`, in place of its `ApiKey`; at most one module may have it. */
  readonly deploymentCredential?: DeploymentTokenSource;
}

/** A module, or a function that makes one. */
export type HostModuleExport = HostModule | ((host: ModuleHost) => HostModule | Promise<HostModule>);

/** Stands for the built-in guard among a module's own: its settings are `Service:ContentGuard:Pattern`. */
export const patternGuardMark: ContentGuard = { name: 'pattern', inspect: () => ({ decision: 'Allow' }) };

/** What a module gets from `import … from 'acp'`. */
export const hostLibrary = {
  defineModule: <T extends HostModuleExport>(module: T): T => module,
  ToolError,
  /** For what this or another service sends, signed by Standard Webhooks. */
  verifyWebhook,
  /** Among `guards`, registers the pattern guard as the presence of its settings does. */
  patternGuard: (): ContentGuard => patternGuardMark,
} as const;
