import { type LoadedConfig, resolveReferences } from '../../core/config/index.ts';
import { environment } from '../../core/environment.ts';
import { createToolRegistry, type ToolRegistry } from '../../engine/tools/index.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import type { LoadedModules } from '../modules/index.ts';
import { loadDeclaredTools } from './declared-tools.ts';

/** The tools that modules and declarations bring, fixed until restart. */
export interface HostTools {
  readonly registry: ToolRegistry;
  close(): Promise<void>;
}

/** Loads `Host:Tools` beside the tools of modules; throws ToolProblemsError with every mistake of both. */
export const loadHostTools = async (
  config: LoadedConfig,
  modules: Pick<LoadedModules, 'registrations' | 'problems'>,
  /** Called when the target of a declared tool is refused. */
  onRefusal: () => void,
): Promise<HostTools> => {
  const { Host, Service } = config.values;
  const allowPrivate = Service.Egress.AllowPrivateNetworkTargets;
  const http = createOutboundHttp({ allowPrivate, onRefusal });
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
    return { registry, close: () => http.close() };
  } catch (error) {
    await http.close();
    throw error;
  }
};
