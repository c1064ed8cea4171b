import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { type AgentMemory, agentModes, firstMode } from '../../engine/context/index.ts';
import type { RegisteredTool } from '../../engine/tools/index.ts';
import { fileTools, searchTools } from './file.tools.ts';
import { memoryStore } from './memory.store.ts';
import { modeTools } from './mode.tools.ts';
import { todoTools } from './todo.tools.ts';

/** The settings of a definition that add tools. */
export interface MemoryFlags {
  readonly memory: {
    readonly enableTodo: boolean;
    readonly enableFileMemory: boolean;
    readonly enableTextSearch: boolean;
  } | null;
  readonly harness: {
    readonly disableTodo: boolean;
    readonly disableFileMemory: boolean;
    readonly disableModes: boolean;
  } | null;
}

export interface MemoryFeature {
  /** Tools that a definition's settings add, in a fixed order. */
  builtInTools(flags: MemoryFlags): readonly RegisteredTool[];
  /** What runs ask for. */
  readonly memory: AgentMemory;
  /** Forgets what belonged to a session, in the unit that removes it. */
  forgetSession(stores: UnitOfWork, tenantId: string, sessionId: string): Promise<void>;
}

/** Todo list, files and mode of agents. */
export const memoryFeature = (deps: { readonly storage: Storage; readonly now: () => number }): MemoryFeature => {
  const store = deps.storage.stores(memoryStore);
  const toolDeps = { store, now: deps.now };
  const tools = {
    todo: todoTools(toolDeps),
    files: fileTools(toolDeps),
    search: searchTools(toolDeps),
    modes: modeTools(toolDeps),
  };
  return {
    builtInTools({ memory, harness }) {
      const has = {
        todo: memory?.enableTodo === true || harness?.disableTodo === false,
        files: memory?.enableFileMemory === true || harness?.disableFileMemory === false,
        search: memory?.enableTextSearch === true,
        modes: harness?.disableModes === false,
      };
      return [
        ...(has.todo ? tools.todo : []),
        ...(has.files ? tools.files : []),
        ...(has.search ? tools.search : []),
        ...(has.modes ? tools.modes : []),
      ];
    },
    memory: {
      async openTodos(owner) {
        const todos = await store.todos(owner);
        return todos.filter(({ status }) => status !== 'completed').map(({ text }) => text);
      },
      async mode(owner) {
        const stored = await store.mode(owner);
        return agentModes.find((mode) => mode === stored) ?? firstMode;
      },
      runClosed: (tenantId, runId) => store.forgottenRun(tenantId, runId),
    },
    forgetSession: (stores, ...session) => stores(memoryStore).forgetSession(...session),
  };
};
