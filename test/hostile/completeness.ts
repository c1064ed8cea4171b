import process from 'node:process';

/** Every shape at every place, and the largest bodies (`npm run test:hostile`); else the worst shapes at their first places. */
export const isComplete = process.env['ACP_HOSTILE'] === 'complete';
