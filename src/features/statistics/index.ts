import type { Storage } from '../../db/storage.ts';
import { type StatisticsDeps, statisticsService } from './statistics.service.ts';
import { statisticsStore } from './statistics.store.ts';

export const statisticsFeature = ({
  storage,
  ...deps
}: Omit<StatisticsDeps, 'store'> & { readonly storage: Storage }) => ({
  handlers: statisticsService({ ...deps, store: storage.stores(statisticsStore) }),
});
