import { wrapText } from '../../text/wrap-text.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { nextCall } from '../state/waiting-run.ts';
import { type Line, line, ruleLine, span } from './line.ts';
import { waitingCallText } from './long-text.ts';

/** The call that is decided about, above the question; what has no room is behind Enter. */
export const answerPanel = ({ prompt }: ScreenState, width: number, room: number): readonly Line[] => {
  if (prompt?.kind !== 'answers') return [];
  const { answers } = prompt;
  const call = nextCall(answers);
  if (call === null) return [];
  const { calls } = answers.waiting;
  const place = calls.length === 1 ? '' : `${answers.decisions.length + 1} of ${calls.length}`;
  const rows = wrapText(waitingCallText(call), width - 2);
  const height = Math.max(1, room - 1);
  const isCut = rows.length > height;
  return [
    ruleLine('Call', place, width, 'strong'),
    ...rows.slice(0, isCut ? height - 1 : height).map((text) => line(`  ${text}`)),
    ...(isCut ? [line(span('  … Enter shows all of it', 'warn'))] : []),
  ];
};
