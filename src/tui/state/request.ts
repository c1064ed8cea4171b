import type { Answers } from './waiting-run.ts';

export type ScoreValue =
  | { readonly kind: 'Stars'; readonly value: 1 | 2 | 3 | 4 | 5 }
  | { readonly kind: 'Binary'; readonly value: 0 | 1 };

/** What a key asks for beyond the screen. */
export type Request =
  | { readonly kind: 'quit' }
  /** Leaves the screens for the command line, which goes on with the run. */
  | { readonly kind: 'open'; readonly runId: string }
  /** Asks the terminal to keep a text for pasting. */
  | { readonly kind: 'copy'; readonly text: string }
  | { readonly kind: 'cancel'; readonly runId: string; readonly name: string }
  | {
      readonly kind: 'score';
      readonly runId: string;
      readonly name: string;
      readonly value: ScoreValue;
      readonly comment: string;
    }
  | { readonly kind: 'answer'; readonly answers: Answers }
  | {
      readonly kind: 'decide';
      readonly approvalId: string;
      readonly toolName: string;
      readonly approved: boolean;
      readonly reason: string;
    };
