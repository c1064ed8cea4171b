import { type OpenAiError, openAiFailure } from '../../contract/openai-error.ts';
import type { Frame, FrameSource } from '../../contract/operation.ts';
import type { RunErrorClass } from '../../contract/run-outcome.ts';
import { problemCode } from '../../engine/run-failure.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { HeldStream } from '../runs/index.ts';

/** The members of a run's event that answers are made of, as far as its type has them. */
export interface RunEventMembers {
  readonly timestamp: string;
  readonly messageId: string;
  /** Null: the parts of messages are stored without it. */
  readonly text: string | null;
  readonly finishReason: string | null;
  /** Of a message that was answered from the response cache. */
  readonly fromCache?: true;
  readonly callId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly source: string | null;
  readonly arguments: unknown;
  readonly result: string | null;
  readonly output: string | null;
  readonly usage: ModelUsage | null;
  readonly error: { readonly type: string; readonly message: string; readonly class: RunErrorClass };
}

export const membersOf = ({ data }: Frame): RunEventMembers => JSON.parse(data) as RunEventMembers;

/** How a run failed, as this API names it. */
export const failureOf = ({ error }: Pick<RunEventMembers, 'error'>): OpenAiError =>
  openAiFailure(problemCode(error.class, error.type), error.message);

export const canceledError = (): OpenAiError => openAiFailure('run-canceled', 'The run was canceled.');

// The time after which an open stream gets its first keep-alive comment.
const maxHeldMs = 15_000;

/**
 * Official clients recognize a rate limit by its status alone, so that a stream begins once a model has answered. A run that a
 * provider refused for its rate limit before that is a 429, as it is without a stream.
 */
export const heldForRateLimit: HeldStream = {
  refuses: ({ errorClass }) => errorClass === 'RateLimited',
  maxMs: maxHeldMs,
};

/** Makes the frames of an answer from those of a run's log, one after another. */
export interface FrameTranslator {
  frames(frame: Frame): readonly Frame[];
}

/** A translator that is made for the first frame: what it has to know is known once the run has begun. */
export const begunLater = (make: () => FrameTranslator): FrameTranslator => {
  let made: FrameTranslator | undefined;
  return {
    frames(frame) {
      made ??= make();
      return made.frames(frame);
    },
  };
};

/** The frames of a run as another API sends them: made as they come, and kept nowhere. */
export const translated = (source: FrameSource, translator: FrameTranslator): FrameSource => ({
  subscribe: (onFrames, onEnd, drained) =>
    source.subscribe(
      (frames) => {
        const made = frames.flatMap((frame) => translator.frames(frame));
        if (made.length > 0) onFrames(made);
      },
      onEnd,
      drained,
    ),
});
