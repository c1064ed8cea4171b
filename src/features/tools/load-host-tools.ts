import { type LoadedConfig, resolveReferences } from '../../core/config/index.ts';
import { environment } from '../../core/environment.ts';
import type { loadModule as LoadModule } from '../../core/load-module.ts';
import { createToolRegistry, type ToolRegistry } from '../../engine/tools/registry.ts';
import type { ToolAuthorizer } from '../../engine/tools/tool.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import { loadDeclaredTools } from './declared-tools.ts';
import { hostLibrary, loadHostModules } from './host-modules.ts';

/** The tools that modules and declarations bring, fixed until restart. */
export interface HostTools {
  readonly registry: ToolRegistry;
  readonly authorizer: ToolAuthorizer | null;
  /** Names of the loaded modules. */
  readonly modules: readonly string[];
  close(): Promise<void>;
}

/** Loads `Host:Modules` and `Host:Tools`; throws ToolProblemsError with every mistake of both. */
export const loadHostTools = async (
  config: LoadedConfig,
  deps: { readonly loadModule: typeof LoadModule },
): Promise<HostTools> => {
  const { Host, Service } = config.values;
  const allowPrivate = Service.Egress.AllowPrivateNetworkTargets;
  const http = createOutboundHttp({ allowPrivate });
  const modules = await loadHostModules(Host.Modules, (path) => deps.loadModule(path, hostLibrary));
  const declared = await loadDeclaredTools(Host.Tools, {
    http,
    allowPrivate,
    resolveReference(kind, name) {
      // Declarations name files by absolute path, so no folder matters here.
      const expansion = resolveReferences(config, `\${${kind}:${name}}`, { env: environment(), folder: '/' });
      return expansion.ok ? expansion.text : null;
    },
  });
  const registrations = [...modules.registrations, ...declared.registrations];
  const problems = [...modules.problems, ...declared.problems];
  try {
    const registry = createToolRegistry(registrations, problems);
    return { registry, authorizer: modules.toolAuthorizer, modules: modules.names, close: () => http.close() };
  } catch (error) {
    await http.close();
    throw error;
  }
};
