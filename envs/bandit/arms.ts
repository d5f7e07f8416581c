// Pairs of arm names (low, high). The names suggest the payouts: the low arm is a steady profession, the high arm a
// risky one (RAGEN, Bandit).

export type ArmPair = readonly [low: string, high: string];

export const armPairs: Readonly<Record<'train' | 'test', readonly ArmPair[]>> = {
  train: [
    ['Teacher', 'Trader'],
    ['Nurse', 'StartupFounder'],
    ['Librarian', 'Investor'],
    ['Accountant', 'StockBroker'],
    ['Engineer', 'RealEstateAgent'],
    ['Pharmacist', 'Musician'],
    ['Clerk', 'Freelancer'],
    ['Technician', 'Youtuber'],
    ['Planner', 'Artist'],
    ['Postman', 'Pilot'],
    ['Banker', 'VentureCapitalist'],
    ['Gardener', 'Cryptominer'],
  ],
  test: [
    ['Receptionist', 'Explorer'],
    ['Archivist', 'Filmmaker'],
    ['Bookkeeper', 'Consultant'],
    ['SocialWorker', 'Photographer'],
    ['Mechanic', 'GameDesigner'],
    ['Secretary', 'Entrepreneur'],
    ['Cashier', 'DataScientist'],
    ['CivilServant', 'StartupAccelerator'],
  ],
};
