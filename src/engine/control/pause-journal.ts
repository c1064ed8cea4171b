import type { Statement } from '../../db/statement.ts';
import type { ActiveRun } from '../active-run.ts';
import type { Pause } from './pause.ts';

/** What is kept of a pause beside the session: written in the unit that closes the run. */
export interface PauseJournal {
  opened(run: ActiveRun, pause: Pause, now: number): readonly Statement[];
}
