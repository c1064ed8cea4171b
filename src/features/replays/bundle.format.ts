import { createHash, type Hash } from 'node:crypto';
import type { Json } from '../../contract/schema.ts';
import type { FinishReason } from '../../engine/active-run.ts';
import type { ChatMessage, ContentPart, KeptSummary, ReadResource, RecordedCall } from '../../engine/context/index.ts';
import type { AttachmentPrint, PromptHashes } from '../../engine/record/index.ts';
import type { ModelTool, ModelUsage } from '../../providers/models/model-provider.ts';
import type { AgentContent } from '../agents/index.ts';
import type { toRunRecord } from '../runs/index.ts';

export const bundleFormat = 'acp-run-bundle';
/** Raised when a reader of an older version would misread a file. */
export const bundleVersion = 1;

export interface BundleHeader {
  readonly format: typeof bundleFormat;
  readonly version: number;
  readonly productVersion: string;
  readonly createdAt: string;
  readonly rootRunId: string;
  readonly redacted: boolean;
}

export interface BundleDefinition {
  readonly name: string;
  readonly version: number;
  readonly origin: 'code' | 'database';
  readonly content: AgentContent;
}

/** What a run began with. `missing` says what the store no longer had, in words. */
export interface BundleStart {
  readonly culture: string | null;
  readonly parameters: Readonly<Record<string, string>>;
  readonly input: readonly ChatMessage[] | null;
  /** What was said before the turn, in the session and as its caller has it; null without a session where nothing was. */
  readonly history: readonly ChatMessage[] | null;
  /** What was read of the resources that the agent names; absent: nothing. */
  readonly resources?: readonly ReadResource[];
  /** What stood for the beginning of that history since an earlier run. */
  readonly historySummary?: KeptSummary | null;
  /** Results of calls that an earlier run had left open; null where the turn began with a message. */
  readonly openResults: readonly ContentPart[] | null;
  /** What the agent's definition gave at the time of the export; null when it no longer compiled. */
  readonly compiled: {
    readonly instructions: string | null;
    readonly tools: readonly ModelTool[];
    /** Of the model, as its catalog says; null: unknown. */
    readonly contextWindowTokens: number | null;
  } | null;
  readonly skills: readonly { readonly name: string; readonly fingerprint: string }[];
  /** Messages that stood for a part of the history, in their order; null where none could be made. */
  readonly summaries: readonly (string | null)[];
  /** What the service told the model in place of the user, in their order. */
  readonly inputs: readonly string[];
  /** What the prompts had of each attachment, by its id; null: it was gone. */
  readonly attachments: Readonly<Record<string, AttachmentPrint | null>>;
  readonly missing: readonly string[];
}

export interface BundleToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Json;
}

/** One model call and its answer. */
export interface BundleStep {
  readonly number: number;
  /** Null: not recorded. */
  readonly prompt: PromptHashes | null;
  /** Null: the call failed, or its answer was not recorded whole. */
  readonly answer: {
    readonly text: string;
    readonly toolCalls: readonly BundleToolCall[];
    readonly finishReason: FinishReason;
    readonly usage: ModelUsage | null;
    /** The provider has interrupted its answer; the next step continues it. */
    readonly paused?: boolean;
  } | null;
  readonly failure: { readonly class: string; readonly type: string; readonly message: string } | null;
  /** Targets that failed before the one that answered. */
  readonly fallbacks: readonly { readonly provider: string; readonly model: string; readonly errorClass: string }[];
  /** Why the step cannot be repeated; null when it can. */
  readonly missing: string | null;
}

export type BundleTool = RecordedCall & { readonly toolCallId: string };

export interface BundledRun {
  readonly record: ReturnType<typeof toRunRecord>;
  readonly start: BundleStart;
  readonly steps: readonly BundleStep[];
  readonly tools: readonly BundleTool[];
  readonly events: readonly Readonly<Record<string, Json>>[];
}

export interface RunBundle {
  readonly header: BundleHeader;
  readonly definitions: readonly BundleDefinition[];
  /** Of all runs, by name. */
  readonly tools: ReadonlyMap<string, ModelTool>;
  /** The root first, then by depth and start; one at a time. */
  runs(): AsyncIterable<BundledRun>;
}

export interface BundleManifest {
  /** Per section, in the order of the file: number of lines, and SHA-256 of them with their line ends. */
  readonly sections: Readonly<Record<string, { readonly lines: number; readonly sha256: string }>>;
  /** SHA-256 of every line before this one. */
  readonly sha256: string;
}

/** A line of the file: a section's name and one value of it. */
export interface BundleLine {
  readonly section: string;
  readonly data: unknown;
}

interface OpenSection {
  readonly name: string;
  lines: number;
  readonly hash: Hash;
}

/** Hashes lines as they pass, by section and as a whole. A section ends where another one begins. */
export class BundleHashes {
  readonly #ended = new Map<string, { readonly lines: number; readonly sha256: string }>();
  readonly #whole = createHash('sha256');
  #open: OpenSection | null = null;

  /** False: the section had ended before, which no bundle has. */
  add(section: string, line: string): boolean {
    if (this.#open?.name !== section) {
      this.#end();
      if (this.#ended.has(section)) return false;
      this.#open = { name: section, lines: 0, hash: createHash('sha256') };
    }
    const open: OpenSection = this.#open;
    open.lines += 1;
    open.hash.update(`${line}\n`);
    this.#whole.update(`${line}\n`);
    return true;
  }

  manifest(): BundleManifest {
    this.#end();
    return { sections: Object.fromEntries(this.#ended), sha256: this.#whole.digest('hex') };
  }

  // A large tree has five sections for each run: an unfinished hash of each would be most of the memory.
  #end(): void {
    if (this.#open === null) return;
    const { name, lines, hash } = this.#open;
    this.#ended.set(name, { lines, sha256: hash.digest('hex') });
    this.#open = null;
  }
}

/** The lines as they stand in the file, the manifest last. */
export const bundleText = async function* (lines: AsyncIterable<BundleLine>): AsyncGenerator<string> {
  const hashes = new BundleHashes();
  for await (const line of lines) {
    const text = JSON.stringify(line);
    hashes.add(line.section, text);
    yield text;
  }
  yield JSON.stringify({ section: 'manifest', data: hashes.manifest() } satisfies BundleLine);
};
