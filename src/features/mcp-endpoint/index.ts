import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/index.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { doorOf, type Exposure, type ExposureSettings } from '../exposure/index.ts';
import { createHandshakeCalls } from './handshake-calls.ts';
import { mcpEndpointService } from './mcp-endpoint.service.ts';
import { createMcpSubscriptions } from './mcp-subscriptions.ts';
import { createMcpTasks, type McpTaskDeps } from './mcp-tasks.ts';
import { createMcpTelemetry } from './mcp-telemetry.ts';
import { createMcpTools } from './mcp-tools.ts';
import { createOperationTools, type OperationToolDeps } from './operation-tools.ts';
import { createStatelessCalls } from './stateless-calls.ts';

export interface McpEndpointFeatureDeps
  extends Pick<OperationToolDeps, 'dispatch'>,
    Pick<McpTaskDeps, 'agents' | 'filesOf' | 'now'> {
  readonly config: Config;
  readonly expose: (settings: ExposureSettings) => Exposure;
  readonly prefix: string;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'error'>;
}

const source = 'mcp';

/** The server side of the Model Context Protocol. */
export const mcpEndpointFeature = (deps: McpEndpointFeatureDeps) => {
  const { config, log, clock, prefix } = deps;
  const { McpServer, Oidc, AllowedOrigins } = config.Host;
  const { Agents: allowlist, Budget: budget, Tasks, ControlPlane, ToolNamePrefix, Path } = McpServer;
  const exposure = deps.expose({ source, setting: 'Host:McpServer:Agents', allowlist, budget });
  const telemetry = createMcpTelemetry(deps.telemetry);
  const tasks = createMcpTasks({
    ...deps,
    runs: exposure.runs,
    telemetry,
    settings: { timeToLiveMs: Tasks.TimeToLive, pollIntervalMs: Tasks.PollInterval },
  });
  const offered = Tasks.Enabled ? tasks : null;
  const tools = createMcpTools({
    ...deps,
    ...exposure,
    tasks,
    operations: createOperationTools({ mode: ControlPlane, dispatch: deps.dispatch }),
    allowlist,
    namePrefix: ToolNamePrefix,
    inlineWaitMs: Tasks.InlineWait,
  });
  const subscriptions = createMcpSubscriptions({
    tools,
    tasks: offered,
    lookEveryMs: Tasks.PollInterval,
    clock,
    log,
  });
  const handlers = mcpEndpointService({
    stateless: createStatelessCalls({ tools, tasks: offered, subscriptions, log, clock }),
    handshake: createHandshakeCalls({
      tools,
      callerOf: ({ tenantId, principal }) => doorOf(source, tenantId, principal).key,
      log,
      clock,
    }),
    tools,
    telemetry,
    allowedOrigins: AllowedOrigins,
    issuer: Oidc.Issuer,
    prefix,
    path: prefix + Path,
  });
  return {
    handlers,
    part: {
      /** Tells the operator what of the allowlist is not offered. */
      started(): void {
        exposure.agents
          .warn(config.Service.DefaultTenantId)
          .catch((error: unknown) => log.warn({ error }, 'The agents that are offered over MCP could not be read'));
      },
      async draining(): Promise<void> {
        subscriptions.endAll();
      },
    },
  };
};
