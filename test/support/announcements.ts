import type { Announcements, Listener, Topic } from '../../src/db/announcements.ts';

/** Processes in one process that hear of each other, as the connection of each would have it. */
export interface AnnouncementHub {
  member(): Announcements;
  /** Nothing is heard from here on. */
  cut(): void;
  /** All is heard again, and each is told that it has missed something. */
  mend(): void;
}

export const announcementHub = (): AnnouncementHub => {
  const members: Map<Topic, Set<Listener>>[] = [];
  let isCut = false;
  return {
    member() {
      const own = new Map<Topic, Set<Listener>>();
      members.push(own);
      return {
        announce(topic, key) {
          if (isCut) return;
          for (const other of members)
            if (other !== own) for (const { heard } of other.get(topic) ?? []) setImmediate(() => heard(key));
        },
        listen(topic, listener) {
          const listeners = own.getOrInsertComputed(topic, () => new Set());
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
        deaf: () => isCut,
      };
    },
    cut() {
      isCut = true;
    },
    mend() {
      isCut = false;
      for (const member of members)
        for (const listeners of member.values()) for (const { missed } of listeners) missed();
    },
  };
};
