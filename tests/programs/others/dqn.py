"""Deep Q-learning: a target network that follows slowly, a replay memory in tensors with a counter, the Huber loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, integers, normal, uniform

CAPACITY, BATCH, GAMMA, TAU = 12, 6, 0.9, 0.05


class ReplayMemory(nn.Module):
    """The last transitions, in buffers that are written round and round."""

    def __init__(self, capacity, n_observations):
        super().__init__()
        self.capacity = capacity
        self.register_buffer("state", torch.zeros(capacity, n_observations))
        self.register_buffer("next_state", torch.zeros(capacity, n_observations))
        self.register_buffer("action", torch.zeros(capacity, dtype=torch.long))
        self.register_buffer("reward", torch.zeros(capacity))
        self.register_buffer("final", torch.zeros(capacity, dtype=torch.bool))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))

    def push(self, state, action, next_state, reward, final):
        at = self.position % self.capacity
        self.state[at] = state
        self.next_state.index_copy_(0, at, next_state.unsqueeze(0))
        self.action[at] = action
        self.reward.index_fill_(0, at, 0.0).index_add_(0, at, reward.view(1))
        self.final[at] = final
        self.position += 1

    def sample(self, draws):
        at = (draws * torch.clamp(self.position, max=self.capacity)).long()
        return self.state[at], self.action[at], self.next_state[at], self.reward[at], self.final[at]


class DQN(nn.Module):
    """A value for each action, from a value and advantages."""

    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 10)
        self.value = nn.Linear(10, 1)
        self.advantage = nn.Linear(10, n_actions)

    def forward(self, x):
        x = F.leaky_relu(self.layer1(x))
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)


def main(compiled):
    policy_net, target_net = filled(DQN(4, 3)), DQN(4, 3)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory = ReplayMemory(CAPACITY, 4)
    world = torch.from_numpy(normal(3, 4, 4)) / 2
    explore, random_actions = uniform(20), integers(3, 20)
    draws = torch.from_numpy(uniform(20, BATCH))

    @compiled
    def optimize_model(draws):
        state_batch, action_batch, next_state_batch, reward_batch, final_mask = memory.sample(draws)
        state_action_values = policy_net(state_batch).gather(1, action_batch.unsqueeze(1))
        next_state_values = torch.zeros(BATCH)
        with torch.no_grad():
            best = policy_net(next_state_batch).argmax(1, keepdim=True)
            next_state_values[:] = target_net(next_state_batch).gather(1, best).squeeze(1)
            next_state_values[final_mask] = 0.0
        expected_state_action_values = (next_state_values * GAMMA) + reward_batch
        criterion = nn.SmoothL1Loss()
        loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        for target_param, param in zip(target_net.parameters(), policy_net.parameters()):
            target_param.data.copy_(TAU * param.data + (1.0 - TAU) * target_param.data)
        return loss

    @compiled
    def interact(state, action):
        following = torch.tanh(world[action] @ state)
        reward = following.sum() - following.abs().max()
        final = following.norm() < 0.25
        memory.push(state, action, following, reward, final)
        return following, reward, final

    losses, state = [], torch.ones(4)
    for step in range(20):
        if explore[step] < 0.5:
            action = torch.tensor(random_actions[step])
        else:
            with torch.no_grad():
                action = policy_net(state).max(0).indices
        state, reward, final = interact(state, action)
        losses.append(reward.item())
        if final:
            state = torch.ones(4)
        if step >= BATCH and step % 2:
            losses.append(optimize_model(draws[step]).item())
    return losses, {"policy": policy_net, "target": target_net, "memory": memory, "optimizer": optimizer}
