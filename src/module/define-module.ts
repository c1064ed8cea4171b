import type { HostModuleExport } from '../features/modules/index.ts';

/**
 * Types a host module; at run time the module is passed through as it is.
 *
 * ```ts
 * export default defineModule({ tools: [{ name: 'add', description: '…', inputSchema: { type: 'object' }, … }] });
 * ```
 */
export const defineModule = <T extends HostModuleExport>(module: T): T => module;
