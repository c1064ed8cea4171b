import { environment } from '../../src/core/environment.ts';

const variable = 'ACP_OUTAGE_SECONDS';

/** How long a database is away in tests that are about that; longer by hand than the suite can wait. */
export const outageSeconds = (otherwise: number): number => Number(environment()[variable] ?? otherwise);
