import { clusters } from '../../text/clusters.ts';
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
  | { readonly kind: 'cancel-job'; readonly jobId: string; readonly name: string }
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

/** A text that is asked for, and what becomes of it. */
export type TextPurpose =
  | { readonly kind: 'filter'; readonly member: 'agentName' | 'label' | 'sessionId' }
  | { readonly kind: 'comment'; readonly runId: string; readonly name: string; readonly value: ScoreValue }
  | { readonly kind: 'rejection'; readonly approvalId: string; readonly toolName: string }
  | { readonly kind: 'refusal'; readonly answers: Answers };

/** What stands between the keys and the screen until it is answered. */
export type Prompt =
  | { readonly kind: 'confirm'; readonly question: string; readonly request: Request }
  | { readonly kind: 'score'; readonly runId: string; readonly name: string }
  | { readonly kind: 'answers'; readonly answers: Answers }
  | { readonly kind: 'filters'; readonly row: number }
  | { readonly kind: 'text'; readonly label: string; readonly value: string; readonly purpose: TextPurpose };

/** Names that a typed text may mean: those that begin with it first, then those that hold it. */
export const suggestions = (names: readonly string[], typed: string): readonly string[] => {
  const wanted = typed.toLowerCase();
  const holding = names.filter((name) => name.toLowerCase().includes(wanted));
  const begins = (name: string): boolean => name.toLowerCase().startsWith(wanted);
  return [...holding.filter(begins), ...holding.filter((name) => !begins(name))];
};

/** The text, or the one name that it stands for. */
export const completed = (names: readonly string[], typed: string): string => {
  if (typed === '' || names.includes(typed)) return typed;
  return suggestions(names, typed)[0] ?? typed;
};

/** Without the last character as a reader sees it. */
export const withoutLast = (value: string): string =>
  [...clusters(value)]
    .slice(0, -1)
    .map(({ segment }) => segment)
    .join('');
