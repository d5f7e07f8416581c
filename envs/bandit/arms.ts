// Pairs of arms (low, high). The name hints at the distribution: a steady trade or a risky one (RAGEN, Bandit).

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
